/**
 * Keeps a local copy running: starts its components (in parallel where they do not need each other), restarts components that
 * died, and stops everything in order. There is exactly one supervisor per data folder (lock.ts). When it is killed, the
 * kernel ends the components too, and the next start removes what they left.
 */

import { appendFileSync } from "node:fs";
import type { Server } from "node:net";
import { languagesOf } from "../capacity.ts";
import { type Component, componentsOf, imageFolder, STOP_ORDER } from "../components.ts";
import { lendApiKeys } from "../credentials/lend.ts";
import { contentOf } from "../install/image.ts";
import type { Instance } from "../instance.ts";
import { modeOf } from "../mode.ts";
import { Problem } from "../problem.ts";
import { readySeconds } from "../readiness.ts";
import { loadSecrets } from "../secrets.ts";
import { settingsFileOf } from "../settings/changed.ts";
import { keepStartedSettings } from "../settings/started.ts";
import { type Environment, settingOf } from "../settings.ts";
import { sized } from "../sizing.ts";
import { svcLine } from "../svc-line.ts";
import { closeInherited } from "../system/descriptors.ts";
import { findJailsGroup } from "../system/jails-group.ts";
import { thisMachine } from "../system/memory.ts";
import { entriesOfProc, ownIdentity, sleep } from "../system/process.ts";
import { type ComponentName, componentsIn, logsOf, runsIn } from "../topology.ts";
import { versionOf } from "../version.ts";
import { Child, setOomScore } from "./child.ts";
import { confine } from "./confinement.ts";
import { controlSocket, type RestartEvent, serveControl } from "./control.ts";
import { demandFreePorts, makeFolders } from "./ground.ts";
import { type HeldSocket, holdSocket } from "./held-socket.ts";
import { removeLeftovers } from "./leftovers.ts";
import { lendCompileCache } from "./lent-cache.ts";
import { takeLock } from "./lock.ts";
import { fileSize, logPath } from "./logs.ts";
import { restartAll, restartPlan } from "./rolling.ts";
import { type RotationRules, rotateLog, rotationRules } from "./rotation.ts";
import { type State, writeState } from "./state.ts";
import type { View } from "./view.ts";

/** Pauses between two looks at a starting component: short at first, for a quick start. */
const FIRST_PROBE_MS = 15;
const LAST_PROBE_MS = 1000;
const ROTATE_EVERY_MS = 2000;
const STOP_MARGIN_MS = 5000;
const INFO = 30;
const WARN = 40;
const ERROR = 50;
/** All components end with the supervisor, so it has a low score, too. */
const SUPERVISOR_OOM_SCORE = -500;

/** The longest time that an orderly stop may take, with all components and their margins. */
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
  readonly #apiKeys: { close: () => void };
  readonly #children: Map<ComponentName, Child>;
  readonly #state: State;
  readonly #graceMs: number;
  readonly #rotation: NodeJS.Timeout;
  readonly #held: HeldSocket | undefined;
  readonly #control: Server;
  readonly #readyMs: number;
  #isRestarting = false;
  #isPublished = false;
  #stopped: Promise<void> | undefined;

  /** Takes the lock and starts everything. Does not wait until the components are ready. */
  static async start(chosen: Instance, caller: NodeJS.ProcessEnv, background: boolean): Promise<Supervisor> {
    closeInherited();
    setOomScore(process.pid, SUPERVISOR_OOM_SCORE);
    makeFolders(chosen);
    const lock = await takeLock(chosen.dataDir);
    if (lock === undefined) throw new AlreadyRunning(`already running on ${chosen.dataDir}`);
    // Every process gets the same image, at its first start and at each further one.
    const instance = { ...chosen, image: imageFolder(chosen) };
    await demandFreePorts(instance, caller);
    removeLeftovers(instance);
    keepStartedSettings(instance.runDir, caller);
    try {
      const { settings, notice } = sized(caller, thisMachine(), languagesOf(instance));
      const view = await confine(instance, caller);
      lendCompileCache(instance);
      const supervisor = new Supervisor(instance, settings, background, lock, view);
      if (notice !== undefined) supervisor.#log(WARN, notice);
      return supervisor;
    } catch (error) {
      removeLeftovers(instance);
      throw error;
    }
  }

  private constructor(
    instance: Instance,
    caller: Environment,
    background: boolean,
    lock: Server,
    view: View | undefined,
  ) {
    this.#instance = instance;
    this.#lock = lock;
    this.#view = view;
    const graceMs = settingOf("SHUTDOWN_GRACE_MS", caller);
    this.#graceMs = graceMs + STOP_MARGIN_MS;
    this.#readyMs = readySeconds(caller) * 1000;
    this.#held = holdSocket(caller.SERVICE_HOST || "127.0.0.1", instance.ports.api);
    const lent = lendApiKeys(instance, caller, view !== undefined, (problem) => this.#log(ERROR, problem));
    this.#apiKeys = lent;
    const isApiHeld = this.#held !== undefined;
    const components = componentsOf({
      instance,
      secrets: loadSecrets(instance.dataDir),
      caller: lent.caller,
      view,
      isApiHeld,
      jailsGroup: findJailsGroup({ mayMove: true }),
    });
    this.#state = {
      version: 1,
      supervisor: ownIdentity(),
      phase: "starting",
      background,
      startedAt: new Date().toISOString(),
      url: instance.url,
      dataDir: instance.dataDir,
      ports: instance.ports,
      cgroup: instance.cgroup,
      mode: modeOf(caller),
      unprivileged: view !== undefined,
      procEntries: entriesOfProc(),
      logStarts: this.#logSizes(components),
      slots: settingOf("SANDBOX_MAX_CONCURRENT_JOBS", caller),
      image: contentOf(instance.image),
      settingsFile: settingsFileOf(instance.dataDir, caller),
      stopSeconds: stopSecondsOf(graceMs),
      build: versionOf(),
      components: [],
    };
    if (view === undefined) {
      this.#log(WARN, "the components run as root: SVC_ALLOW_PRIVILEGED_COMPONENTS accepts it");
    }
    const events = {
      changed: () => this.#publish(),
      died: (name: string, how: string, delay: number) =>
        this.#log(ERROR, `${name} ended (${how}); it is started again in ${delay / 1000} s`),
    };
    const inherited = (name: ComponentName) =>
      this.#held !== undefined && runsIn(name, "api") ? [this.#held.descriptor] : [];
    this.#children = new Map(
      components.map((one) => [one.name, new Child(one, instance, events, inherited(one.name))]),
    );
    const rules = rotationRules(caller);
    this.#rotation = setInterval(() => {
      this.#rotate(rules);
      if (!this.#isPublished && this.#state.phase === "running") this.#publish();
      for (const child of this.#children.values()) child.writePidFile();
    }, ROTATE_EVERY_MS);
    this.#control = serveControl(controlSocket(instance), (component, tell) => this.restart(component, tell));
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

  /** Resolves when the component answers, or when the copy is stopping. */
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

  /** Restarts all processes one after the other, or only the process of one component. Throws a Problem when one does not become ready. */
  async restart(component: string | undefined, tell: (event: RestartEvent) => void): Promise<void> {
    if (this.#isRestarting)
      throw new Problem("a restart is under way", `${svcLine("status")} shows the components.`);
    if (this.#state.phase !== "running")
      throw new Problem(`the copy is ${this.#state.phase}`, `Wait until ${svcLine("status")} says ready.`);
    const plan = restartPlan([...this.#children.keys()], component);
    this.#isRestarting = true;
    this.#log(INFO, `restarting ${plan.join(", ")}`);
    try {
      await restartAll(
        plan.map((name) => this.#children.get(name) as Child),
        {
          instance: this.#instance,
          graceMs: this.#graceMs,
          readyMs: this.#readyMs,
          isStopping: () => this.#stopped !== undefined,
          tell,
        },
      );
      if (component === undefined) this.#state.build = versionOf();
      this.#publish();
      this.#log(INFO, "restarted");
    } catch (error) {
      this.#log(ERROR, `restart failed: ${(error as Error).message}`);
      throw error;
    } finally {
      this.#isRestarting = false;
    }
  }

  #logSizes(components: readonly Component[]): Record<string, number> {
    const names = components.flatMap(({ name }) => logsOf(name));
    return Object.fromEntries(names.map((name) => [name, fileSize(logPath(this.#instance.logsDir, name))]));
  }

  /** Stops all components in order and removes what a run leaves. Safe to call twice. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stopAll();
    return this.#stopped;
  }

  async #stopAll(): Promise<void> {
    clearInterval(this.#rotation);
    this.#control.close();
    // Clients that wait for the API must not wait any longer.
    this.#held?.close();
    this.#apiKeys.close();
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

  /** Ends all components at once: for an operator who does not want to wait. */
  kill(): void {
    for (const child of this.#children.values()) child.kill();
  }

  /**
   * Once everything runs, a full disk does not stop the copy. A state that could not be written is written a little later.
   */
  #publish(): void {
    this.#state.components = [...this.#children.values()].map((child) => child.state);
    try {
      writeState(this.#instance.runDir, this.#state);
      this.#isPublished = true;
    } catch (error) {
      if (this.#state.phase === "starting") throw error;
      this.#isPublished = false;
      this.#log(WARN, `writing the state failed: ${(error as Error).message}`);
    }
  }

  /** A full disk does not stop the copy. */
  #rotate(rules: RotationRules): void {
    for (const name of [...[...this.#children.keys()].flatMap(logsOf), "supervisor"]) {
      try {
        rotateLog(logPath(this.#instance.logsDir, name), rules);
      } catch (error) {
        this.#log(WARN, `rotating the log of ${name} failed: ${(error as Error).message}`);
      }
    }
  }

  #log(level: number, msg: string): void {
    const line = JSON.stringify({ level, time: new Date().toISOString(), name: "supervisor", msg });
    try {
      appendFileSync(logPath(this.#instance.logsDir, "supervisor"), `${line}\n`, { mode: 0o600 });
    } catch {
      // On a full disk the log line is lost, and the system keeps running.
    }
  }
}
