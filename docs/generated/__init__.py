"""Pages, samples and manual pages that are written from the code: ``python -m docs.generated``, or ``make generate``.

Each module generates whole files, or a part between two marks of a page (:mod:`docs.generated.markdown`).
:func:`docs.generated.outputs.outputs` has all of them, for the command that writes and the test that compares.
"""
