/** A program that says how it is confined, and what of that must be the same in every jail. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Job } from "@svc/test-kit/jail/run";

const KINDS = ["mnt", "pid", "net", "ipc", "uts", "user", "cgroup"] as const;

const MADE = [
  ...["cpuinfo", "filesystems", "loadavg", "locks", "meminfo", "mounts", "net"],
  ...["stat", "sys", "uptime", "version", "vmstat"],
];
/** What the host has there. */
const HIDDEN = readdirSync("/proc").filter(
  (name) => !/^(\d+|self|thread-self)$/.test(name) && !MADE.includes(name),
);

const SCRIPT = `
set -u
echo "hello" > made/out.txt; mkdir empty; echo "$(<in.txt) $(</dev/stdin)"
for f in status limits mountinfo cgroup setgroups uid_map; do echo "== $f"; echo "$(</proc/self/$f)"; done
echo "== facts"; while read -r l; do case $l in MemTotal*) echo "$l";; esac; done < /proc/meminfo; echo "$(</proc/cpuinfo)"; echo "$(</proc/uptime)"
echo "== net"; echo "$(</proc/net/dev)"
echo "== names"; uname -n; echo /* /dev/* /proc/[!0-9]* /proc/[0-9]* /tmp/* /run/*/*; pwd
echo "== kernel"; ls -nd /mnt/data /tmp /dev/shm in.txt fixed.txt /proc/[!0-9]* /proc/{${MADE.join(",")}}; ls -A /proc/sys
for n in ${HIDDEN.join(" ")}; do [[ -e /proc/$n ]] && echo "shows $n"; done; echo "$(</proc/locks)"; (: < /proc/net/softnet_stat) 2>&1
echo "== descriptors"; for fd in /proc/self/fd/[0-2]; do [[ -p $fd ]] && echo pipe || echo other; done; ls /proc/self/fd
echo "== refused"; unshare -U true 2>&1; (echo x > /etc/x) 2>&1; (echo x > fixed.txt) 2>&1; (: > /proc/sysrq-trigger) 2>&1
trap
umask
echo "== namespaces"; readlink ${KINDS.map((kind) => `/proc/self/ns/${kind}`).join(" ")}
`;

const STATUS =
  /^(Umask|Tgid|PPid|TracerPid|Uid|Gid|Groups|NStgid|NSpgid|NSsid|Cap.*|NoNewPrivs|Seccomp.*|Sig(Blk|Ign|Cgt)|Threads):/;

/** `processes` and `memoryMib` differ from run to run: what an earlier one had is not what this one was given. */
export function confinedJob(processes: number, memoryMib: number): Job {
  return {
    argv: ["/bin/bash", "-c", SCRIPT],
    files: { "in.txt": "in" },
    readOnly: { "fixed.txt": "fixed" },
    symlinks: { link: "in.txt" },
    directories: ["made"],
    listEverything: true,
    stdin: "typed",
    limits: { processes, memoryBytes: memoryMib * 1024 * 1024 },
  };
}

function sections(text: string): Map<string, string[]> {
  const parts = text.split(/^== /m).map((part) => part.trimEnd().split("\n"));
  return new Map(
    parts.map(([title = "", ...lines], index) =>
      index === 0 ? ["first", [title, ...lines]] : [title, lines],
    ),
  );
}

/** What the program said, without what may differ; throws when a namespace is the host's. */
export function confinementIn(out: string, processes: number, memoryMib: number): string {
  const said = sections(out);
  for (const [index, kind] of KINDS.entries()) {
    const seen = said.get("namespaces")?.[index];
    if (!seen?.startsWith(`${kind}:[`) || seen === readlinkSync(`/proc/self/ns/${kind}`))
      throw new Error(`the ${kind} namespace is the host's, or none: ${seen}`);
  }
  said.delete("namespaces");
  const change = (title: string, line: (line: string) => string) =>
    said.set(title, (said.get(title) ?? []).map(line));
  said.set(
    "status",
    (said.get("status") ?? []).filter((line) => STATUS.test(line)),
  );
  change("limits", (line) =>
    line.replace(/^Max processes .*/, (all) => all.replaceAll(`${processes + 64} `, "as given ")),
  );
  // Numbers of mounts and devices, and the folder of this jaild.
  change("mountinfo", (line) =>
    line
      .split(" ")
      .slice(3)
      .join(" ")
      .replace(/svc-jaild-\w+/, "of-jaild"),
  );
  change("facts", (line) => line.replace(`${memoryMib * 1024} kB`, "as given"));
  change("kernel", (line) => line.replace(/ [A-Z][a-z]{2} +\d+ .{5} /, " "));
  return [...said].map(([title, lines]) => [title, ...lines].join("\n")).join("\n\n");
}

/** What the host sees of a program, and what must be equal however it started. */
export function seenByHost(pid: number) {
  const read = (file: string) => readFileSync(`/proc/${pid}/${file}`, "utf8");
  const lines =
    /^(Name|Umask|Uid|Gid|Groups|Cap\w+|NoNewPrivs|Seccomp\w*|Sig(Blk|Ign|Cgt)|Threads|Cpus_allowed_list):/;
  return {
    status: read("status")
      .split("\n")
      .filter((line) => lines.test(line)),
    fds: readdirSync(`/proc/${pid}/fd`),
    root: readlinkSync(`/proc/${pid}/root`),
    texts: ["cgroup", "limits", "oom_score_adj", "mounts", "uid_map", "gid_map", "cmdline"].map(read),
    // A zygote's hash seed has left zeros behind it.
    environment: read("environ").replace(/\0+$/, ""),
  };
}
