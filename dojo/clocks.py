"""The card's clocks, power and driver, as nvidia-smi tells them; what it does not tell is left out."""

import subprocess
from collections.abc import Sequence

# nvidia-smi's name for it -> ours, which names the unit.
FIELDS = {
    "driver_version": "driver",
    "clocks.sm": "SM clock, MHz",
    "clocks.max.sm": "highest SM clock, MHz",
    "clocks.mem": "memory clock, MHz",
    "power.draw": "power, W",
    "power.limit": "power limit, W",
    "temperature.gpu": "temperature, C",
}
PATIENCE = 5.0  # seconds; usually it takes 0.1


class Query:
    """A question to nvidia-smi about one card, by its PCI bus id, or the first; the caller need not wait."""

    def __init__(self, bus_id: str = "", command: Sequence[str] = ("nvidia-smi",)) -> None:
        settings = [f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"]
        if bus_id:
            settings.append(f"--id={bus_id}")
        self.process: subprocess.Popen[str] | None
        try:
            self.process = subprocess.Popen(
                [*command, *settings],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        except OSError:  # there is none
            self.process = None

    def pending(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def answer(self) -> dict[str, str | float]:
        """{"SM clock, MHz": 1980.0, ...}, empty without nvidia-smi. Waits for it, but not for ever."""
        if self.process is None:
            return {}
        try:
            output, _ = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            return {}
        return read(output) if self.process.returncode == 0 else {}


def read(table: str) -> dict[str, str | float]:
    """The first line of its table: "580.159.04, 1980, [N/A], ..."."""
    found: dict[str, str | float] = {}
    line, _, _ = table.partition("\n")
    for name, text in zip(FIELDS.values(), line.split(", "), strict=False):
        if name == "driver":
            found[name] = text
            continue
        try:
            found[name] = float(text)
        except ValueError:  # "[N/A]": this card does not tell
            pass
    return found
