/**
 * Keeps a local copy running: starts its components (in parallel where they do not need each other), starts again what
 * died, and ends everything in order. Exactly one per data folder (lock.ts). When this process is killed, the kernel ends
 * the components too; what they left is removed at the next start.
 */
import { appendFileSync, existsSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import type { Server } from "node:net";
import { dirname, join } from "node:path";
import { capacityOf, fitted, languagesOf } from "../capacity.ts";
import { type Component, componentsOf, STOP_ORDER } from "../components.ts";
import type { Instance } from "../instance.ts";
import { Problem } from "../problem.ts";
import { loadSecrets } from "../secrets.ts";
import { removeCgroups } from "../system/cgroups.ts";
import { closeInherited } from "../system/descriptors.ts";
import { findJailsGroup } from "../system/jails-group.ts";
import { totalMemory } from "../system/memory.ts";
import { entriesOfProc, identify, sleep } from "../system/process.ts";
import { type ComponentName, componentsIn, logsOf } from "../topology.ts";
import { Child, setOomScore } from "./child.ts";
import { confine } from "./confinement.ts";
import { demandFreePorts, makeFolders } from "./ground.ts";
import { lendCompileCache } from "./lent-cache.ts";
import { takeLock } from "./lock.ts";
import { logPath, rotateLog } from "./logs.ts";
import { removeState, type State, writeState } from "./state.ts";
import type { View } from "./view.ts";

/** Pauses between two looks at a starting component: short at first, for a quick start. */
const FIRST_PROBE_MS = 15;
const LAST_PROBE_MS = 1000;
const ROTATE_EVERY_MS = 5000;
const STOP_MARGIN_MS = 5000;
const WARN = 40;
/** With the supervisor all components end. */
const SUPERVISOR_OOM_SCORE = -500;
const DEFAULT_GRACE_MS = 30_000;

/** The longest time that an end in order may take, with all components and their margins. */
export function stopSecondsOf(graceMs: number): number {
  const longest = (group: readonly ComponentName[]) =>
    Math.max(...group.map((name) => componentsIn(name).length));
  const steps = STOP_ORDER.reduce((sum, group) => sum + longest(group), 0);
  return Math.ceil((steps * (graceMs + STOP_MARGIN_MS)) / 1000);
}

export class AlreadyRunning extends Problem {}

export class Supervisor {
  readonly #instance: Instance;
  readonly #lock: Server;
  readonly #view: View | undefined;
  readonly #children: Map<ComponentName, Child>;
  readonly #state: State;
  readonly #graceMs: number;
  readonly #rotation: NodeJS.Timeout;
  #stopped: Promise<void> | undefined;

  /** Takes the lock and starts everything. Does not wait until the components are ready. */
  static async start(
    instance: Instance,
    caller: NodeJS.ProcessEnv,
    background: boolean,
  ): Promise<Supervisor> {
    closeInherited();
    setOomScore(process.pid, SUPERVISOR_OOM_SCORE);
    makeFolders(instance);
    const lock = await takeLock(instance.dataDir);
    if (lock === undefined) throw new AlreadyRunning(`already running on ${instance.dataDir}`);
    await demandFreePorts(instance, caller);
    removeLeftovers(instance);
    try {
      const capacity = capacityOf(totalMemory(), caller, languagesOf(instance));
      const fitting = fitted(capacity, caller);
      const view = await confine(instance, caller);
      lendCompileCache(instance);
      const supervisor = new Supervisor(instance, fitting.caller, background, lock, view);
      if (fitting.notice !== undefined) supervisor.#log(WARN, fitting.notice);
      return supervisor;
    } catch (error) {
      removeLeftovers(instance);
      throw error;
    }
  }

  private constructor(
    instance: Instance,
    caller: NodeJS.ProcessEnv,
    background: boolean,
    lock: Server,
    view: View | undefined,
  ) {
    this.#instance = instance;
    this.#lock = lock;
    this.#view = view;
    this.#graceMs = Number(caller.SHUTDOWN_GRACE_MS || DEFAULT_GRACE_MS) + STOP_MARGIN_MS;
    const components = componentsOf({
      instance,
      secrets: loadSecrets(instance.dataDir),
      caller,
      view,
      jailsGroup: findJailsGroup({ mayMove: true }),
    });
    const supervisor = identify(process.pid);
    if (supervisor === undefined) throw new Problem("/proc is not there");
    this.#state = {
      version: 1,
      supervisor,
      phase: "starting",
      background,
      startedAt: new Date().toISOString(),
      url: instance.url,
      dataDir: instance.dataDir,
      ports: instance.ports,
      cgroup: instance.cgroup,
      unprivileged: view !== undefined,
      procEntries: entriesOfProc(),
      components: [],
    };
    if (view === undefined) {
      this.#log(WARN, "the components run as root: SVC_ALLOW_PRIVILEGED_COMPONENTS accepts it");
    }
    const events = {
      changed: () => this.#publish(),
      died: (name: string, how: string, delay: number) =>
        this.#log(50, `${name} ended (${how}); it is started again in ${delay / 1000} s`),
    };
    this.#children = new Map(components.map((one) => [one.name, new Child(one, instance, events)]));
    this.#rotation = setInterval(() => this.#rotate(), ROTATE_EVERY_MS);
    this.#startAll(components);
  }

  get state(): Readonly<State> {
    return this.#state;
  }

  #startAll(components: readonly Component[]): void {
    const ready = new Map<ComponentName, Promise<void>>();
    for (const component of components) {
      const needs = component.after.map((name) => ready.get(name));
      ready.set(component.name, this.#startAfter(component, needs));
    }
    void Promise.all(ready.values()).then(() => {
      if (this.#stopped !== undefined) return;
      this.#state.phase = "running";
      this.#publish();
    });
  }

  /** Settles when the component answers, or everything is about to end. */
  async #startAfter(component: Component, needs: readonly (Promise<void> | undefined)[]): Promise<void> {
    await Promise.all(needs);
    if (this.#stopped !== undefined) return;
    this.#children.get(component.name)?.start();
    let pause = FIRST_PROBE_MS;
    while (this.#stopped === undefined && (await component.probe()) !== undefined) {
      await sleep(pause);
      pause = Math.min(pause * 1.2, LAST_PROBE_MS);
    }
  }

  /** Ends all components in order and removes what a run leaves; safe to call twice. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stopAll();
    return this.#stopped;
  }

  async #stopAll(): Promise<void> {
    clearInterval(this.#rotation);
    this.#state.phase = "stopping";
    this.#publish();
    for (const group of STOP_ORDER) {
      await Promise.all(
        group.map(async (name) => {
          // Components of one process stop one after the other.
          const graceMs = this.#graceMs * componentsIn(name).length;
          const graceful = (await this.#children.get(name)?.stop(graceMs)) ?? true;
          if (!graceful) this.#log(WARN, `${name} did not end in time and was killed`);
        }),
      );
    }
    removeLeftovers(this.#instance);
    this.#view?.close();
    this.#lock.close();
  }

  /** Ends all components at once: for somebody who does not want to wait. */
  kill(): void {
    for (const child of this.#children.values()) child.kill();
  }

  #publish(): void {
    this.#state.components = [...this.#children.values()].map((child) => child.state);
    writeState(this.#instance.runDir, this.#state);
  }

  #rotate(): void {
    for (const name of [...[...this.#children.keys()].flatMap(logsOf), "supervisor"])
      rotateLog(logPath(this.#instance.logsDir, name));
  }

  #log(level: number, msg: string): void {
    const line = JSON.stringify({ level, time: new Date().toISOString(), name: "supervisor", msg });
    appendFileSync(logPath(this.#instance.logsDir, "supervisor"), `${line}\n`, { mode: 0o600 });
  }
}

/** Sockets, pid files, links and cgroups of a copy that does not run. */
function removeLeftovers(instance: Instance): void {
  removeState(instance.runDir);
  for (const name of readdirSync(instance.runDir)) {
    if (/\.(pid|sock|new)$|^(redis-server|compile-cache)$/.test(name)) {
      rmSync(join(instance.runDir, name), { recursive: true, force: true });
    }
  }
  removeSocketFolder(instance);
  removeCgroups(instance.cgroup);
}

/** The folder belongs to Redis: nothing in it is removed but the socket by its name. */
function removeSocketFolder({ redisSocket }: Instance): void {
  const folder = dirname(redisSocket);
  rmSync(redisSocket, { force: true });
  if (existsSync(folder) && readdirSync(folder).length === 0) rmdirSync(folder);
}
