/**
 * A search of a program's own memory, environment, arguments and /proc for words that must not be there. The words come
 * over standard input in disguise and are only ever compared in disguise, so that the search does not find itself.
 */
import { randomBytes } from "node:crypto";

const MASK = 0x5a;

/** A word that stands nowhere else. */
export const newWord = () => `word${randomBytes(12).toString("hex")}`;

/** Standard input of a program that searches for the words. */
export const searchFor = (words: readonly string[]): string =>
  JSON.stringify(
    words.map((word) => Buffer.from(Buffer.from(word).map((byte) => byte ^ MASK)).toString("hex")),
  );

/** Goes before a searching Python program: `look(bytes, where)`, `look_around()`, and the list `found`. */
export const SEARCH = `
import sys
words = [bytes.fromhex(word) for word in json.load(sys.stdin)]
TABLE = bytes(byte ^ ${MASK} for byte in range(256))
found = []

def look(data, where):
    disguised = bytes(data).translate(TABLE)
    for number, word in enumerate(words):
        if word in disguised: found.append(f"{number} in {where}")

def look_at_memory():
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        for line in open("/proc/self/maps").readlines():
            limits, mode = line.split()[:2]
            start, end = (int(part, 16) for part in limits.split("-"))
            if mode[0] != "r" or "[v" in line: continue
            for at in range(start, end, 1 << 22):
                try:
                    memory.seek(at)
                    data = memory.read(min(1 << 22, end - at) + 256 if at + (1 << 22) < end else end - at)
                except (OSError, OverflowError): break
                look(data, "memory")

def look_around():
    look_at_memory()
    for pid in [name for name in os.listdir("/proc") if name.isdigit()] + ["self"]:
        for name in ("environ", "cmdline", "comm", "status", "stat", "maps", "mountinfo", "mounts", "cgroup", "auxv", "limits", "sched", "io", "fdinfo/0", "fdinfo/1"):
            try: look(open(f"/proc/{pid}/{name}", "rb").read(1 << 20), f"/proc/{pid}/{name}")
            except OSError: pass
    for folder, folders, names in os.walk("/proc/self/net"):
        for name in names:
            try: look(open(os.path.join(folder, name), "rb").read(1 << 20), name)
            except OSError: pass
    for top in ("/mnt/data", "/tmp", "/dev/shm", "/run", "/etc"):
        for folder, _, names in os.walk(top):
            look(folder.encode() + b"".join(name.encode("utf8", "surrogateescape") for name in names), "names in " + folder)
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    try: look(open(path, "rb").read(1 << 24), path)
                    except OSError: pass
    look(repr(dict(os.environ)).encode(), "environment")
    look(" ".join(sys.argv).encode(), "arguments")
`;
