/**
 * The service in containers, for tests: `podman-compose up -d` of deploy/compose.yaml from nothing, under a project name and on a port
 * of its own. The images of this version must be there (deploy/images/build).
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { modeOf } from "@svc/cli/mode";
import { parse } from "yaml";
import { afterDeath } from "../system/after-death.ts";
import { freePort } from "../system/free-ports.ts";
import { until } from "../system/processes.ts";
import { openPodman, type Podman } from "./podman.ts";

const COMPOSE = join(ROOT, "deploy/compose.yaml");
const PORT = 3112;
/** Ten containers at once, on a machine that does other work. */
const READY_MS = 300_000;
const JAILD = "    command: [jaild]\n";
/** Lines of the file of API keys. */
const KEYS = /^ *SVC_API_KEYS_FILE: .*\n/gm;
const LABEL = "io.podman.compose.project";

/** Removes what is left of a project when the tests end early. */
const REMOVE = `
podman ps --all --quiet --filter "label=${LABEL}=$what" | xargs --no-run-if-empty podman rm --force --time 0
podman volume ls --quiet --filter "name=^$what" | xargs --no-run-if-empty podman volume rm --force
podman network ls --quiet --filter "name=^$what" | xargs --no-run-if-empty podman network rm --force
rm -r "$FOLDER" "$(dirname "$CONTAINERS_CONF")"
`;

export interface Compose extends Podman {
  project: string;
  /** podman-compose with this project: the last lines that it printed. */
  run: (...args: readonly string[]) => Promise<string[]>;
  /** Address of the public API, with /v1. */
  url: string;
  services: readonly string[];
  /** The name of a service's container. */
  nameOf: (service: string) => string;
  /** Pid of its first process, as the host sees it. */
  pid: (service: string) => number;
  /** Ends it with its volumes; answers what is left all the same. */
  stop: () => Promise<string[]>;
}

interface ComposeFile {
  services: Record<string, unknown>;
}

/** Without authentication, as with `./svc up`, unless a setting asks for it. Pure. */
export function asUpWould(settings: Readonly<Record<string, string>>): Record<string, string> {
  const open = { LOCAL_MODE: "true", SVC_ALLOW_AUTH_PROVIDER_NONE: "true" };
  return { ...(modeOf(settings).isLocal ? open : {}), ...settings };
}

/**
 * `settings`: lines of settings.env over those of the repository; with LOCAL_MODE=true the file has no API keys, which contradict it.
 * Settles when a program has run. `mountsOf`: of containers that run already (openPodman).
 */
export async function startCompose(
  settings: Readonly<Record<string, string>> = {},
  mountsOf?: number,
): Promise<Compose> {
  const podman = await openPodman(mountsOf);
  const project = `svc-test-${randomBytes(4).toString("hex")}`;
  const folder = mkdtempSync(join(tmpdir(), "svc-compose-"));
  const port = await freePort();
  const text = readFileSync(COMPOSE, "utf8");
  const onPort = replaced(text, `127.0.0.1:${PORT}:`, `127.0.0.1:${port}:`);
  // jaild names its control groups by it, and no two on one machine may have the same.
  const own = `${JAILD}    environment: { SVC_DATA_DIR: /${project} }\n`;
  const beside = replaced(onPort, JAILD, own);
  const isOpen = settings.LOCAL_MODE === "true";
  writeFileSync(join(folder, "compose.yaml"), isOpen ? beside.replaceAll(KEYS, "") : beside);
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
  const given = readFileSync(join(ROOT, "deploy/settings.env"), "utf8");
  writeFileSync(join(folder, "settings.env"), given + lines.join(""));
  const { services } = parse(text, { merge: true }) as ComposeFile;
  const forget = afterDeath(REMOVE, project, {
    through: podman.through,
    env: { ...podman.env, FOLDER: folder },
  });
  const url = `http://127.0.0.1:${port}/v1`;
  const compose: Compose["run"] = (...args) =>
    podman.compose(join(folder, "compose.yaml"), ["-p", project, ...args]);
  const nameOf = (service: string) => `${project}_${service}_1`;
  const stop = async () => {
    await compose("down", "-v");
    const left = leftOf(project, podman);
    podman.close();
    forget();
    rmSync(folder, { recursive: true });
    return left;
  };
  try {
    const said = await compose("up", "-d");
    // podman-compose before 1.1 says nothing by its exit code.
    const unstarted = statesOf(project, podman).filter((state) => state.endsWith(" Created"));
    if (unstarted.length > 0) throw new Error([...said, ...unstarted].join("\n"));
    await until(
      () => answers(`${url}/ready`),
      READY_MS,
      () => statesOf(project, podman),
    );
  } catch (error) {
    const logs = Object.keys(services).map((name) => podman.tryPodman("logs", "--tail", "5", nameOf(name)));
    const said = logs.map(({ stdout, stderr }) => stdout + stderr).join("");
    const left = await stop().catch((failure: Error) => failure.message);
    if (left.length > 0) console.error(left);
    throw new Error(`${(error as Error).message}\n${said}`, { cause: error });
  }
  return {
    ...podman,
    project,
    run: compose,
    url,
    services: Object.keys(services),
    nameOf,
    pid: (service) => Number(podman.podman("inspect", "--format", "{{.State.Pid}}", nameOf(service))),
    stop,
  };
}

function replaced(text: string, from: string, to: string): string {
  if (!text.includes(from)) throw new Error(`${COMPOSE} has no ${from}`);
  return text.replace(from, () => to);
}

const answers = (url: string): Promise<boolean> =>
  fetch(url, { signal: AbortSignal.timeout(30_000) }).then(
    ({ ok }) => ok,
    () => false,
  );

const statesOf = (project: string, { podman }: Podman) =>
  podman("ps", "--all", "--filter", `label=${LABEL}=${project}`, "--format", "{{.Names}} {{.Status}}").split(
    "\n",
  );

/** Containers, volumes and networks by name. podman-compose before 1.1 leaves networks, which are removed here without a word. */
function leftOf(project: string, { podman, tryPodman }: Podman): string[] {
  const named = (...what: string[]) =>
    podman(...what, "--format", "{{.Name}}")
      .split("\n")
      .filter((name) => name.startsWith(project));
  for (const network of named("network", "ls")) tryPodman("network", "rm", network);
  return [
    ...podman("ps", "--all", "--filter", `name=^${project}`, "--format", "{{.Names}}").split("\n"),
    ...named("volume", "ls"),
    ...named("network", "ls"),
  ].filter((name) => name !== "");
}
