/**
 * A version of the project in a folder of its own, and its components as processes without a supervisor, as operators of several
 * machines run them: each can be ended and started by itself. What a component is started from says the version itself.
 */
import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "@svc/cli/instance";
import { httpAnswers, redisAnswers, socketExists } from "@svc/cli/probes";
import type { ComponentName } from "@svc/cli/topology";
import { until } from "@svc/test-kit/system/processes";

const READY_MS = 60_000;
const run = promisify(execFile);

export type Variables = Readonly<Record<string, string>>;

/** What a version runs, as it says itself. */
interface Planned {
  name: ComponentName;
  command: string[];
  env: Record<string, string>;
}

/** Of every version that can be the last one: these modules and functions have not changed since 9f1e73a. */
const PLAN = `
const [tree, environment] = process.argv.slice(1);
const env = JSON.parse(environment);
const from = (name) => import(tree + "/cli/src/" + name + ".ts");
const [{ resolveInstance }, { componentsOf }, { loadSecrets }] = await Promise.all(["instance", "components", "secrets"].map(from));
const instance = resolveInstance({ "data-dir": undefined, "port-offset": undefined }, env);
const components = componentsOf({ instance, secrets: loadSecrets(instance.dataDir), caller: env, view: undefined });
process.stdout.write(JSON.stringify(components.map(({ name, command, env }) => ({ name, command, env }))));
`;

export class Version {
  readonly tree: string;
  readonly #remove: () => void;

  private constructor(tree: string, remove: () => void) {
    this.tree = tree;
    this.#remove = remove;
  }

  /** The version of the working tree. */
  static current(): Version {
    return new Version(ROOT, () => undefined);
  }

  /** Throws what to do where the clone does not have the commit. `remove` removes the folder. */
  static at(commit: string): Version {
    const git = (...args: string[]) => ["git", ["-c", "safe.directory=*", "-C", ROOT, ...args]] as const;
    try {
      execFileSync(...git("cat-file", "-e", `${commit}^{commit}`), { stdio: "ignore" });
    } catch {
      throw new Error(
        `this clone does not have the commit ${commit}, from which the upgrade begins. A shallow clone gets it by: git fetch --unshallow`,
      );
    }
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-version-")));
    const archive = join(folder, "tree.tar");
    execFileSync(...git("archive", "--output", archive, commit));
    execFileSync("tar", ["-C", folder, "-xf", archive]);
    rmSync(archive);
    return new Version(folder, () => rmSync(folder, { recursive: true }));
  }

  remove(): void {
    this.#remove();
  }

  /** Runs its ./svc; throws what it said when it fails. */
  async svc(args: readonly string[], env: Variables): Promise<void> {
    const inherited = Object.entries(process.env).filter(([name]) => !/^(SVC|SANDBOX|NODE)_/.test(name));
    await run(join(this.tree, "svc"), [...args], { env: { ...Object.fromEntries(inherited), ...env } });
  }

  async plan(variables: Variables): Promise<Planned[]> {
    const { SANDBOX_PACKAGES_DIRECTORY: image = "" } = process.env;
    // Only this version was told where its image is.
    const env = this.tree === ROOT ? { ...variables, SANDBOX_PACKAGES_DIRECTORY: image } : variables;
    const node = [...["--input-type=module", "--eval", PLAN, "--"], this.tree, JSON.stringify(env)];
    const { stdout } = await run(process.execPath, node, { cwd: this.tree });
    return JSON.parse(stdout) as Planned[];
  }
}

/** Where each answers, from its environment. */
const READY: Partial<Record<ComponentName, (env: Variables) => string>> = {
  api: ({ SERVICE_PORT }) => `${SERVICE_PORT}/v1/ready`,
  worker: ({ WORKER_HEALTH_PORT }) => `${WORKER_HEALTH_PORT}/ready`,
  runner: ({ PORT }) => `${PORT}/api/v2/health`,
  "file-server": ({ FILE_SERVER_PORT }) => `${FILE_SERVER_PORT}/ready`,
  "tool-call-server": ({ TOOL_CALL_SERVER_PORT }) => `${TOOL_CALL_SERVER_PORT}/health`,
  "egress-gateway": ({ EGRESS_GATEWAY_PORT }) => `${EGRESS_GATEWAY_PORT}/health`,
};

export interface StartOptions {
  /** Over the variables of the plan. */
  env?: Variables;
  logsDir: string;
}

/** One component that runs. It ends with this process, however that happens. */
export class RunningComponent {
  readonly name: ComponentName;
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;

  private constructor(name: ComponentName, child: ChildProcess) {
    this.name = name;
    this.#child = child;
    this.#exited = once(child, "exit");
  }

  /** Settles when it takes requests. */
  static async start(
    version: Version,
    name: ComponentName,
    variables: Variables,
    { env = {}, logsDir }: StartOptions,
  ): Promise<RunningComponent> {
    const planned = (await version.plan(variables)).find((component) => component.name === name);
    if (planned === undefined) throw new Error(`the version in ${version.tree} has no ${name}`);
    const { command, env: own } = planned;
    const log = openSync(join(logsDir, `${name}.log`), "a", 0o600);
    const all = { ...own, ...env };
    const child = spawn(command[0] as string, command.slice(1), {
      cwd: "/",
      env: all,
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    const component = new RunningComponent(name, child);
    try {
      await until(
        async () => {
          if (child.exitCode !== null)
            throw new Error(`the ${name} of ${version.tree} ended: see ${logsDir}`);
          return (await missing(planned, all)) === undefined;
        },
        READY_MS,
        () => `the ${name} of ${version.tree}`,
      );
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    }
    return component;
  }

  /** Ends it in order: what it has accepted is finished first. Answers the exit code, or the signal. */
  async stop(): Promise<number | string | null> {
    this.#child.kill("SIGTERM");
    await this.#exited;
    return this.#child.exitCode ?? this.#child.signalCode;
  }
}

/** What still keeps it from taking requests. */
function missing({ name, command }: Planned, env: Variables): Promise<string | undefined> {
  const argument = (option: string) => command[command.indexOf(option) + 1] ?? "";
  if (name === "redis") return redisAnswers(argument("--unixsocket"));
  if (name === "jaild") return Promise.resolve(socketExists(argument("--socket")));
  return httpAnswers(`http://127.0.0.1:${READY[name]?.(env)}`);
}
