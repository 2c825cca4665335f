"""The engine's own numbers: how long, how often, how many times. Nothing here has to do with a limit of a gate."""

from __future__ import annotations

TRIES_MAX = 3  # a lost run of a repeatable step is tried again this often in all, then a person is asked
WATCH_S, WATCH_MAX_S = 1.0, 5.0  # between two looks at a living host process: longer while it says nothing; its own nudge comes sooner
POLL_WATCH_S = 10.0  # of a poll, which takes seconds: only where its nudge was lost
POLL_LINES_MAX = 60  # of each journal of a soak that one poll keeps for the live page: a million requests are in the evidence, nobody reads them here
ROUND_MAX = 16  # polls of one site that one playbook makes together
ROUND_S = 300  # and the seconds that they may take, also on a machine with as many rounds as it may have; then each is made by itself
EARLY_SHARE = 0.25  # of its interval: how much sooner than its time a soak may be polled when others of its site are
POLLS_KEPT = 2  # run directories of polls that were read, for whoever looks into them
BUSY_S = 5.0  # a host lock is held by another attempt
PUSH_BACK_S = 15.0  # a row that could not be moved at all: later, never in a spin
HINT_AGAIN_S = 60.0  # a due row whose hint was sent this long ago is hinted again, though its queue holds hints
HINT_LOST_S = 10.0  # and this soon when its queue is empty: then the broker lost it
QUEUED_MAX = 100  # hints that wait in one queue by the tick's doing: who comes with the next tick waits for no more than these
BEAT_S = 8.0  # a node's heartbeat is written anew by finished work at most this often
SILENT_S, SECOND_LOOK_S = 10.0, 10.0  # a heartbeat this old is noted as missing; and only when it still is at a second look is its node silent
NODE_STALE_S = 90.0  # a node without a heartbeat for this long may be taken over
CANCEL_STALE_S = 15.0  # and for this long one whose attempt is to be canceled: ending it twice harms nobody, and 30 s are all there is
CANARY_S = 5.0  # between two canaries
LOST_CONTACT_FIRST_S, LOST_CONTACT_MAX_S = 10.0, 300.0
SOAK_POLL_MIN_S, SOAK_POLL_MAX_S, SOAK_POLL_SHARE = 15.0, LOST_CONTACT_MAX_S, 0.2  # a fifth of the expected time, within these
RUN_MARGIN_S = 1.0  # after the expected end of a measured run, before the first playbook
RUN_AGAIN_MIN_S, RUN_AGAIN_SHARE = 3.0, 0.15  # a run that takes longer than expected
STOP_GRACE_S = 4  # after the time of a stop (settings: stop_seconds), before we end its playbook ourselves
CLEAN_S = 5.0  # for what is just being started when an attempt is ended, to come up and be ended
START_TIMEOUT_S = 7200  # of the playbook that switches the arm and hands a job over, at least; longer where a model loads longer
START_MARGIN_S = 1800  # of it, beside two loads of the model

ASK_TIMEOUT_S = 600  # of a playbook that looks at a job, or brings a pack of no size
COLLECT_BYTES_PER_S = 2_000_000  # at least, of a pack on its way home: Ansible's own way from a host that is entered by an ordinary user is no faster
ORDER_MAX_S = 7 * 86400  # of any one playbook, however many drives it wipes and however large its pack: the runner's stop grace is above it


def back_off_s(misses: int) -> float:
    """Return the seconds until the next poll after so many polls without an answer (1, 2, ...): 10 s doubling up to 5 min."""
    return min(LOST_CONTACT_MAX_S, LOST_CONTACT_FIRST_S * 2.0 ** min(max(misses - 1, 0), 10))


def soak_poll_s(expected_s: float, most_s: float) -> float:
    """Return the seconds between two polls of a soak that is expected to take so long. `most_s`: the setting, which is kept within the bounds."""
    return min(max(SOAK_POLL_MIN_S, SOAK_POLL_SHARE * expected_s), max(SOAK_POLL_MIN_S, min(most_s, SOAK_POLL_MAX_S)))


def run_again_s(elapsed_s: float) -> float:
    """Return the seconds until the next look at a measured run that was not over when it should have been: ever longer."""
    return max(RUN_AGAIN_MIN_S, RUN_AGAIN_SHARE * elapsed_s)
