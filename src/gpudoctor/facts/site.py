"""Facts about what a site expects of its machines."""

from typing import ClassVar

from gpudoctor.facts.base import Fact


class SiteExpectation(Fact, kw_only=True):
    """One line of the site configuration: `what` of `section` (expect, thresholds) should be, or not exceed, this."""

    kind: ClassVar[str] = "site_expectation"

    section: str
    what: str
    number: float | None = None
    text: str | None = None


class SiteDeparture(Fact, kw_only=True):
    """What was found is not what the site expects; `found` and `wanted` are words for a sentence."""

    kind: ClassVar[str] = "site_departure"

    what: str
    found: str
    wanted: str
    subject: str | None = None  # where it is no GPU
