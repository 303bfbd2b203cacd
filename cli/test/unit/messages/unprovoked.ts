/** Texts that no test provokes, by what it would take. A text leaves this list with the test that holds it. */
export const UNPROVOKED: Readonly<Record<string, readonly string[]>> = {
  "is no message: for a program, in the details of a bug, or of commands that are not an operator's": [
    "commands.ts: For developers:",
    "commands/librechat.ts: echo the program ran",
    "commands/librechat.ts: the program ran\\n",
    "commands/supervise.ts: Runs the supervisor of a background copy.",
    "credentials/at-hand.ts: key add try --expires 1h",
    'install/bundles.ts: import{createRequire as $createRequire}from"node:module";const require=$createRequire(import.meta.url);',
    "install/bundles.ts: places of sources",
    "install/bundles.ts: loaded apart",
    "install/bundles.ts: new URL(…,import.meta.url).href",
    "readiness.ts: exit code 78",
    'supervisor/confinement.ts: \nfor file; do test -r "$file" || echo "$file"; done\nfind "$ROOT/services" "$ROOT/packages" -name "*.lua" ! -readable 2>&1\ntest ! -e "$RUN" || cd "$RUN" 2>&1\n',
    "system/cgroups.ts: no name of ours: …",
    "unexpected.ts: caused by …\n…",
  ],
  "is about a component that is broken while it runs, as tests/e2e/health.test.ts has it": [
    "probes.ts: cannot write to its disk; is the disk full?",
    "system/standstill.ts: has no file descriptors left (… of … are open)",
    "system/standstill.ts: is stopped by a signal (kill -CONT … lets it go on)",
  ],
  "is said in a container or while its image is built": [
    "containers/build.ts: NODE_COMPILE_CACHE is not set",
    "containers/health.ts: the first process is no component",
    "commands/key.ts: A running API accepts it within … seconds.",
    "containers/main.ts: error: init, jaild, health, key, or the name of a component",
    "svc-line.ts: podman-compose run --rm --no-deps -T init",
    "containers/root-image.ts: the link is missing",
  ],
  "needs systemd as the first process of the machine, as tests/v2/service.test.ts has it": [
    "commands/install.ts: Starting the service, until a canary run has passed",
    "commands/install.ts: Running: …/v1 (systemctl status …, journalctl -u …)",
    "systemd/systemctl.ts: See: journalctl -u … -n 50. systemd tries again by itself; ./svc uninstall ends that.",
  ],
  "names a step that takes too little time here to be shown": ["commands/uninstall.ts: Ending the service"],
  "needs a user whom sudo knows": ["system/root.ts: … needs root rights: continuing with sudo\n"],
  "needs sources that are broken, or that others cannot read, and all tests run from this one tree": [
    "doctor/copy.ts: the components are not built yet",
    "install/bundles.ts: bundling the components failed",
    "supervisor/confinement.ts: Let others read the code: cd … && …",
  ],
  "needs a program that goes away between its installation and its use": [
    "components.ts: no Redis server is installed",
  ],
  "needs a service that breaks off, as test/unit/follow.test.ts has it": [
    "client.ts: the answer of … broke off (…)",
    "client.ts: the answer of … broke off",
  ],
  "needs a disk or a kernel that fails": [
    "doctor/copy.ts: See docs/troubleshooting.md.",
    "supervisor/background.ts: … (pid …) cannot be ended",
    "supervisor/background.ts: cgroups cannot be removed: …",
    "supervisor/background.ts: A process waits in the kernel, for a disk for example: see dmesg, then run ./svc down again.",
    "supervisor/ownership.ts: … cannot be given to its component",
    "supervisor/supervisor.ts: writing the state failed: …",
  ],
};
