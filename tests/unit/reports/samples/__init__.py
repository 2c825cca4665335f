"""Sample facts of the four gates, as the features would hand them over: real shapes, invented numbers, both parties named."""

from tests.unit.reports.samples.checks import BROKEN_CLAIM, check, claims, g3_checks
from tests.unit.reports.samples.document import document, manifest, plan
from tests.unit.reports.samples.figures import figures
from tests.unit.reports.samples.record import CUSTOMER, VENDOR, approval, attempts, engagement, facts

__all__ = [
    "BROKEN_CLAIM",
    "CUSTOMER",
    "VENDOR",
    "approval",
    "attempts",
    "check",
    "claims",
    "document",
    "engagement",
    "facts",
    "figures",
    "g3_checks",
    "manifest",
    "plan",
]
