"""The contract of `.importlinter` with one table of allowed imports between packages."""

from __future__ import annotations

import grimp
from importlinter import Contract, ContractCheck, fields, output


class ImportsOfOurs(Contract):
    """A package imports only those of Sluice's packages that its row names.

    ``rows`` are lines ``package: allowed…``; the prefix ``sluice_`` of allowed packages is omitted, and ``-`` allows
    nothing. Every root package has a row.
    """

    type_name = "imports_of_ours"

    rows = fields.ListField(subfield=fields.StringField())

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        """List each direct import that no row allows."""
        allowed = dict(self._row(row) for row in self.rows)
        packages = set(self.session_options["root_packages"])
        if packages != set(allowed):
            raise ValueError(f"rows and root packages differ in {sorted(packages ^ set(allowed))}")
        forbidden = [
            f"{module} imports {imported}"
            for package, others in allowed.items()
            for module in {package} | graph.find_descendants(package)
            for imported in graph.find_modules_directly_imported_by(module)
            if imported.partition(".")[0] in packages - others - {package}
        ]
        return ContractCheck(kept=not forbidden, metadata={"forbidden": sorted(forbidden)})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print the imports, one a line."""
        for line in check.metadata["forbidden"]:
            output.print_error(line)

    @staticmethod
    def _row(row: str) -> tuple[str, set[str]]:
        package, _, others = row.partition(":")
        return package, {f"sluice_{name}" for name in others.split() if name != "-"}
