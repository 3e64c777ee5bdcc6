"""Write every generated file: ``python -m docs.generated``."""

from docs.generated.outputs import write

write()
