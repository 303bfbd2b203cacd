/**
 * The unit that runs a whole copy: `./svc up` in the foreground. Pure. Each directive was tried with jails running under it.
 * The unit lists the directives that jails cannot run with, and the reasons, so that nobody adds them.
 */
import { Problem } from "../problem.ts";

export const UNIT_NAME = "svc.service";

export interface UnitSpec {
  /** The folder of the working copy, which contains ./svc. */
  root: string;
  /** Arguments of `./svc up` that select the copy. */
  options: readonly string[];
  /** Folders that the service writes to: absolute paths, which need not exist. */
  writable: readonly string[];
  /** Files and folders that settings name, and that the service only reads. */
  readable?: readonly string[];
  stopSeconds: number;
}

/** The first line of the unit, by which ./svc uninstall recognizes the working copy that made it. */
export const markOf = (root: string) => `# Made by ./svc install in ${clean(root)}`;

export function unitText(spec: UnitSpec): string {
  const { root, options, stopSeconds } = spec;
  const command = [pathWord(`${root}/svc`), ...["up", "--no-example", ...options].map(argumentWord)];
  const paths = topmost([root, ...spec.writable]);
  return `${markOf(root)}
# ./svc uninstall removes it, ./svc install writes it again. Your own changes: systemctl edit ${UNIT_NAME}

[Unit]
Description=svc: runs untrusted code in single-use jails
Wants=network-online.target
After=network-online.target time-sync.target
RequiresMountsFor=${paths.map(pathWord).join(" ")}
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
# Ready means that a canary run has passed in a jail.
Type=notify
NotifyAccess=main
ExecStart=${command.join(" ")}
Restart=on-failure
RestartSec=5
# A command line that is not understood does not get better.
RestartPreventExitStatus=2
# A first start after an upgrade may build.
TimeoutStartSec=15min
# ./svc up ends the components in order, each within SHUTDOWN_GRACE_MS, while accepted requests finish.
KillMode=mixed
TimeoutStopSec=${stopSeconds}s

# jaild makes a control group for each jail below the unit's, and bounds memory and processes of all jails together.
Delegate=yes
TasksMax=infinity
LimitNPROC=infinity
LimitNOFILE=65536:1048576
# A program that is killed for its memory limit is an ordinary result.
OOMPolicy=continue
# A core file of a component would hold its secrets.
LimitCORE=0

${hardening(paths, spec.readable ?? [])}
[Install]
WantedBy=multi-user.target
`;
}

const isBelow = (folder: string) => (path: string) => path === folder || path.startsWith(`${folder}/`);

/** The paths that do not lie below another one. */
export function topmost(paths: readonly string[]): string[] {
  const all = [...new Set(paths)];
  return all.filter((path) => !all.some((other) => other !== path && isBelow(other)(path)));
}

const TEMPORARY = ["/tmp", "/var/tmp"];

function hardening(paths: readonly string[], readable: readonly string[]): string {
  const needs = (folder: string) => [...paths, ...readable].some(isBelow(folder));
  const homes = ["/home", "/root", "/run/user"].some(needs);
  const temporary = TEMPORARY.some(needs);
  const writable = topmost(temporary ? [...paths, ...TEMPORARY] : paths);
  return `# Only the supervisor and jaild, or the launcher of microVMs, are root here; the components have users of their own without capabilities.
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=${writable.map(pathWord).join(" ")}
${homes ? "# ProtectHome is not set: the copy, or a file of its settings, lies in a home folder." : "ProtectHome=yes"}
${temporary ? "# PrivateTmp is not set: the copy, or a file of its settings, lies in a folder for temporary files." : "PrivateTmp=yes"}
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectClock=yes
ProtectProc=invisible
RestrictRealtime=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
DevicePolicy=closed
CapabilityBoundingSet=~CAP_SYS_MODULE CAP_SYS_RAWIO CAP_SYS_TIME CAP_SYS_BOOT CAP_SYS_PACCT CAP_SYS_TTY_CONFIG CAP_SYSLOG
CapabilityBoundingSet=~CAP_MAC_ADMIN CAP_MAC_OVERRIDE CAP_AUDIT_CONTROL CAP_AUDIT_READ CAP_AUDIT_WRITE CAP_BPF CAP_PERFMON
CapabilityBoundingSet=~CAP_NET_RAW CAP_NET_BROADCAST CAP_LINUX_IMMUTABLE CAP_LEASE CAP_WAKE_ALARM CAP_BLOCK_SUSPEND
# Not set, because jaild or programs in jails need what they forbid:
#   ProtectControlGroups      a control group for each jail
#   ProtectKernelTunables     jaild forbids further user namespaces in each jail by a file of /proc/sys
#   RestrictNamespaces        seven namespaces for each jail
#   ProtectHostname           a host name in each jail
#   PrivateDevices            device nodes in each jail (CAP_MKNOD)
#   PrivateUsers              a user id for each slot
#   ProcSubset                jaild reads settings and counters of the kernel
#   SystemCallFilter          jaild has a list of allowed calls for each kind of process, and jails would inherit this one
#   MemoryDenyWriteExecute    JavaScript, Java and others compile while they run
#   RestrictSUIDSGID, LockPersonality    programs would see calls fail that are harmless in a jail
`;
}

/** Refuses control characters, because they would end the line of a unit. */
function clean(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  if (/[\u0000-\u001f\u007f]/.test(text))
    throw new Problem(`systemd takes no control characters: ${JSON.stringify(text)}`);
  return text;
}

/** Writes a path so that systemd reads it back unchanged: in quotes where necessary, with % as %%. */
export function pathWord(path: string): string {
  const text = clean(path).replaceAll("%", "%%");
  return /^[\w@+=:,./%-]+$/.test(text) ? text : `"${text.replace(/[\\"]/g, "\\$&")}"`;
}

/** An argument in a command line of a unit, where systemd also expands variables. */
const argumentWord = (text: string) => pathWord(text).replaceAll("$", "$$$$");
