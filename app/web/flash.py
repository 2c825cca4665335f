"""What was just done, said on the next page: the cookie holds a key of this table, never a sentence of anybody."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from app.kit.i18n import N_, translate
from app.settings import settings

COOKIE = "qg_flash"
SENTENCES: dict[str, str] = {
    "approve": N_("Your approval is recorded. It is final, and it stands below the object's hash."),
    "reject": N_("Your rejection is recorded, with its reason. It is final."),
    "entry_recorded": N_("The entry is recorded. It stands in the register and in every report of its gate that is printed from now on."),
    "waiver_recorded": N_("The waiver is recorded. It waits for the approval of both parties in the sign-off inbox."),
    "entry_closed": N_("The entry is closed. It stays in the register."),
    "wipe_ordered": N_("The wipe is ordered. It waits for the approval of both parties in the sign-off inbox."),
    "wipe_withdrawn": N_("The wipe is withdrawn. Nothing was wiped."),
    "packing_proposed": N_("The packing list is proposed. It waits for the approval of both parties in the sign-off inbox."),
    "printed": N_("The report holds everything that was recorded so far."),
    "plan_revised": N_("The new revision of the plan is kept. Both parties approve it before anything else starts."),
    "password_changed": N_("Your password is changed and every session of yours has ended. Sign in with the new one."),
    "token_revoked": N_("The token is revoked. It is refused from now on."),
    "cause_claimed": N_("The cause is claimed. Both parties decide on it in the sign-off inbox."),
    "event_cause_claimed": N_("The cause is recorded. Both parties decide on it in the sign-off inbox; then the attempt is judged again."),
    "judged_again": N_("The attempt was judged again. Every judgement stands below the verdict, with the checks that it changed."),
    "form_handed_in": N_("The form is handed in; the attempt goes on."),
    "cancel_asked": N_("The cancel is asked for. This page shows what could be stopped."),
}


def redirect(address: str, key: str) -> Response:
    """Lead to a page that will say what was done."""
    response = RedirectResponse(address, 303)
    response.set_cookie(COOKIE, key, max_age=60, path="/", secure=settings().secure_cookies, httponly=True, samesite="lax")
    return response


def taken(request: Request, locale: str) -> str:
    """Return the sentence that the page is to say, or nothing."""
    msgid = SENTENCES.get(request.cookies.get(COOKIE, ""))
    return translate(msgid, locale) if msgid else ""


def forget(response: Response) -> None:
    """Say it once only."""
    response.delete_cookie(COOKIE, path="/", secure=settings().secure_cookies, httponly=True, samesite="lax")
