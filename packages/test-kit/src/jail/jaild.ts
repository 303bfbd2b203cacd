/**
 * A jaild of a test's own: temporary socket, own control group name. Needs root, `make -C jail`, and the image
 * (TEST_ROOTFS, or the one in the working tree).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { childrenOf, descendants, groupsNamed, isFiltered, isZygote, until } from "./host.ts";
import { mode } from "./mode.ts";
import { slow } from "./slowness.ts";
import { NAMES, zygoteArguments } from "./zygotes.ts";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
export const IMAGE = process.env.TEST_ROOTFS ?? join(root, ".pkgs/rootfs");
export const BINARY = process.env.TEST_JAILD ?? join(root, "jail/build/jaild");

export interface JaildOptions {
  slots?: number;
  /** Jails that are not paused, when there are fewer of them than slots. */
  ready?: number;
  /** With zygotes, for warm starts: all, or those named. */
  zygotes?: boolean | readonly string[];
  binary?: string;
  /** A program that becomes the command line after it. */
  through?: readonly string[];
  args?: readonly string[];
  env?: Readonly<Record<string, string>>;
  /** Descriptors that jaild is started with besides its standard streams. */
  inherited?: readonly number[];
}

export class Jaild {
  readonly socket: string;
  readonly group: string;
  readonly wanted: number;
  /** The directory of each slot that its jail shows at /run/svc. */
  readonly tools: string;
  log = "";
  #child: ChildProcess;
  readonly #directory: string;
  readonly #zygotes: readonly string[];
  readonly #spawn: () => ChildProcess;

  private constructor({
    slots = 4,
    ready = slots,
    zygotes = mode.warm,
    binary = BINARY,
    through = [],
    args = [],
    env = {},
    inherited = [],
  }: JaildOptions) {
    this.wanted = ready;
    this.#directory = mkdtempSync(join(tmpdir(), "svc-jaild-"));
    this.tools = join(this.#directory, "tools");
    this.socket = join(this.#directory, "jaild.sock");
    this.group = `svc-test-${this.#directory.slice(-6)}`;
    const own = [
      "--root",
      IMAGE,
      "--socket",
      this.socket,
      "--cgroup",
      this.group,
      "--tool-directory",
      this.tools,
    ];
    const counts = ["--slots", `${slots}`, "--ready", `${ready}`];
    this.#zygotes = typeof zygotes === "boolean" ? (zygotes ? NAMES : []) : zygotes;
    const warm = zygoteArguments(this.#zygotes);
    const list = [...own, ...counts, ...warm, ...args];
    const [program = binary, ...words] = [...through, binary, ...list];
    this.#spawn = () =>
      spawn(program, words, {
        stdio: ["ignore", "ignore", "pipe", ...inherited],
        env: { ...process.env, ...env },
      });
    this.#child = this.#launch();
  }

  /** Does not wait: a jaild that will not come up can be looked at. */
  static launch(options: JaildOptions = {}): Jaild {
    return new Jaild(options);
  }

  static async start(options: JaildOptions = {}): Promise<Jaild> {
    const jaild = Jaild.launch(options);
    try {
      await jaild.ready();
      if (mode.warm) await jaild.warm();
    } catch (error) {
      await jaild.stop();
      throw error;
    }
    return jaild;
  }

  #launch(): ChildProcess {
    this.log = "";
    const child = this.#spawn();
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.log += text;
    });
    return child;
  }

  async ready(): Promise<void> {
    await until(() => this.log.includes("listening on") || this.ended, "jaild listens", 10_000);
    if (this.ended) throw new Error(`jaild ended: ${this.log}`);
  }

  get pid(): number {
    const { pid } = this.#child;
    if (pid === undefined) throw new Error("jaild did not start");
    return pid;
  }

  get ended(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  get exitCode(): number | null {
    return this.#child.exitCode;
  }

  /** Processes that jaild forked for its slots. */
  get keepers(): number[] {
    return childrenOf(this.pid).filter((pid) => !isZygote(pid));
  }

  /** Processes from which jaild copies warm starts. */
  get zygotes(): number[] {
    return childrenOf(this.pid).filter(isZygote);
  }

  /** All zygotes are complete. */
  async warm(count = this.#zygotes.length): Promise<void> {
    const ready = () => this.log.match(/the zygote \S+ is ready/g)?.length ?? 0;
    await until(() => ready() >= count, "the zygotes are ready", slow(60_000));
  }

  /** As many keepers as are wanted have a complete jail: its first process is confined. */
  async full(): Promise<void> {
    await until(
      () =>
        this.keepers.length === this.wanted &&
        this.keepers.every((keeper) => {
          const below = descendants(keeper);
          return below.length > 0 && below.every(isFiltered);
        }),
      "all jails are ready",
      10_000,
    );
  }

  get groups(): string[] {
    return groupsNamed(this.group);
  }

  get socketExists(): boolean {
    return existsSync(this.socket);
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    if (this.ended) return;
    const exit = once(this.#child, "exit");
    this.#child.kill(signal);
    await exit;
  }

  async restart(): Promise<void> {
    this.#child = this.#launch();
    await this.ready();
  }

  async stop(): Promise<void> {
    await this.kill("SIGTERM");
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
