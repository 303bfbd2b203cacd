/**
 * Makes sure, before anything starts, that every component can run as a user of its own: that it can read its program and
 * reach its folders. Otherwise refuses the start, unless the operator insists on components that run as root.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { BUNDLES, bundleOf, NODE } from "../components.ts";
import { type Instance, ROOT, SERVICES } from "../instance.ts";
import { Problem } from "../problem.ts";
import { type Environment, settingOf } from "../settings.ts";
import { shown } from "../system/run.ts";
import { SERVICE_PROCESSES } from "../topology.ts";
import { confined, userOf } from "../users.ts";
import { giveFolders, storageOf } from "./ownership.ts";
import { openView, type View } from "./view.ts";

/** Paths of the code, the image, the data and the files of settings that components use. */
function neededPaths(instance: Instance, caller: Environment): string[] {
  const code = ["node_modules", "packages", "services"].map((name) => join(ROOT, name));
  const data = [instance.runDir, join(instance.dataDir, "redis"), storageOf(instance, caller).path];
  const keys = caller.SVC_JWT_PUBLIC_KEYS_DIR ? [realpathSync(caller.SVC_JWT_PUBLIC_KEYS_DIR)] : [];
  const authorities = caller.REDIS_TLS_CA ? [realpathSync(caller.REDIS_TLS_CA)] : [];
  const image = existsSync(instance.image) ? [realpathSync(instance.image)] : [];
  return [...code, ...image, ...data, ...keys, ...authorities].filter((path) => existsSync(path));
}

/** Throws a Problem when components cannot have users of their own. Changes nothing. `stage`: a path where nothing exists. */
export async function tryConfinement(instance: Instance, caller: Environment, stage: string): Promise<void> {
  demandUnprivilegedPorts(instance);
  const view = await openView(neededPaths(instance, caller), stage);
  try {
    demandReadable(instance, caller, view);
  } finally {
    view.close();
  }
}

/** Undefined: the components run as root, because the operator insists on it. */
export async function confine(instance: Instance, caller: NodeJS.ProcessEnv): Promise<View | undefined> {
  try {
    demandUnprivilegedPorts(instance);
    giveFolders(instance, caller, true);
    const view = await openView(neededPaths(instance, caller), join(instance.runDir, "view.new"));
    demandReadable(instance, caller, view);
    return view;
  } catch (error) {
    if (settingOf("SVC_ALLOW_PRIVILEGED_COMPONENTS", caller)) {
      giveFolders(instance, caller, false);
      return undefined;
    }
    const { message, advice = "" } = error as Error & { advice?: string };
    throw new Problem(
      `the components cannot run as users of their own: ${message}`,
      `${advice}\nOr accept that they run as root: SVC_ALLOW_PRIVILEGED_COMPONENTS=true`.trim(),
    );
  }
}

function demandUnprivilegedPorts({ ports }: Instance): void {
  const first = Number(readFileSync("/proc/sys/net/ipv4/ip_unprivileged_port_start", "utf8"));
  for (const service of SERVICES) {
    if (ports[service] >= first) continue;
    throw new Problem(
      `port ${ports[service]} of the ${service} is for root alone`,
      `Choose another port behind a reverse proxy, or: sysctl -w net.ipv4.ip_unprivileged_port_start=${ports[service]}`,
    );
  }
}

/** Prints each file that the user cannot read, and each folder that it cannot enter. */
const UNREADABLE = `
for file; do test -r "$file" || echo "$file"; done
find "$ROOT/services" "$ROOT/packages" -name "*.lua" ! -readable 2>&1
test ! -e "$RUN" || cd "$RUN" 2>&1
`;

function demandReadable(instance: Instance, caller: Environment, { enter }: View): void {
  const keys = caller.SVC_JWT_PUBLIC_KEYS_DIR || "";
  const chosen = [
    ...(caller.REDIS_TLS_CA ? [caller.REDIS_TLS_CA] : []),
    ...(keys === "" ? [] : [keys, ...keyFilesIn(keys)]),
  ];
  const files = [
    NODE,
    ...SERVICE_PROCESSES.map(bundleOf),
    ...(existsSync(instance.image) ? [join(realpathSync(instance.image), "runtimes.json")] : []),
    ...chosen,
  ];
  const user = userOf("api", instance);
  const [program = "", ...words] = [
    ...enter,
    ...confined("KILL", user),
    ...["/bin/sh", "-c", UNREADABLE, "sh", ...files],
  ];
  const { stdout, stderr, status } = spawnSync(program, words, {
    env: { PATH: "/usr/bin:/bin", LC_ALL: "C", ROOT, RUN: instance.runDir },
    encoding: "utf8",
  });
  const told = [...new Set(`${stdout}${stderr}`.split("\n").filter(Boolean))];
  if (status === 0 && told.length === 0) return;
  throw new Problem(
    `user ${user.uid} cannot read what it needs`,
    [...told.slice(0, 4), adviceFor(told, chosen, instance)].join("\n"),
  );
}

/** `chosen`: files that settings name. Anything else in `told` belongs to the code or the image. */
function adviceFor(told: readonly string[], chosen: readonly string[], { image }: Instance): string {
  const open = chosen.filter((path) => told.includes(path));
  if (open.length > 0)
    return `Let others read it, which holds no secret: ${shown(["chmod", "go+rX", ...open])}`;
  const code = ["services", "packages", dirname(dirname(NODE)), BUNDLES, join(image, "runtimes.json")];
  return `Let others read the code: cd ${shown([ROOT])} && ${shown(["chmod", "-R", "go+rX", ...code])}`;
}

function keyFilesIn(folder: string): string[] {
  const files = readdirSync(folder, { withFileTypes: true });
  return files
    .filter((file) => !file.name.startsWith(".") && !file.isDirectory())
    .map(({ name }) => join(folder, name));
}
