"""dmidecode: system information, processors and memory devices as text."""

from typing import Any, Dict, List


def main(argv: List[str], rack: Dict[str, Any]) -> int:
    """Print types 1, 4, 17 and 127 (the end of the table), whichever are asked for (all without -t)."""
    if "--version" in argv:
        print(rack["tools"]["dmidecode"])
        return 0
    wanted = argv[argv.index("-t") + 1].split(",") if "-t" in argv[:-1] else ["1", "4", "17", "127"]
    print("# dmidecode %s\nGetting SMBIOS data from sysfs.\nSMBIOS 3.5.0 present.\n" % rack["tools"]["dmidecode"])
    if "1" in wanted:
        system = rack["system"]
        print("Handle 0x0001, DMI type 1, 27 bytes\nSystem Information")
        print(
            "\tManufacturer: %s\n\tProduct Name: %s\n\tVersion: %s\n\tSerial Number: %s"
            % (system["maker"], system["product"], system["version"], system["serial"])
        )
        print("\tWake-up Type: Power Switch\n\tSKU Number: Not Specified\n\tFamily: Not Specified\n")
    if "4" in wanted:
        for index, cpu in enumerate(rack.get("processors", [])):
            print("Handle 0x%04X, DMI type 4, 48 bytes\nProcessor Information" % (0x20 + index))
            print("\tSocket Designation: %s\n\tType: Central Processor\n\tFamily: Zen" % cpu["socket"])
            print("\tVersion: %s\n\tVoltage: 1.1 V\n\tStatus: Populated, Enabled" % cpu["model"])
            print("\tCore Count: %d\n\tCore Enabled: %d\n\tThread Count: %d\n" % (cpu["cores"], cpu.get("enabled", cpu["cores"]), 2 * cpu["cores"]))
    if "17" in wanted:
        for index, module in enumerate(rack["memory"]):
            print("Handle 0x%04X, DMI type 17, 92 bytes\nMemory Device\n\tTotal Width: 80 bits\n\tData Width: 64 bits" % (0x40 + index))
            print(
                "\tSize: %d GB\n\tForm Factor: DIMM\n\tLocator: %s\n\tType: DDR5\n\tSpeed: %d MT/s" % (module["gb"], module["locator"], module["mt"])
            )
            print("\tPart Number: %s\n\tConfigured Memory Speed: %d MT/s\n\tVolatile Size: %d GB\n" % (module["part"], module["mt"], module["gb"]))
    if "127" in wanted:
        print("Handle 0xFEFF, DMI type 127, 4 bytes\nEnd Of Table\n")
    return 0
