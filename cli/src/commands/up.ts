/** `./svc up`: installs what is missing, starts everything, waits for a canary run, runs the example. */
import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { join, resolve } from "node:path";
import { languagesOf } from "../capacity.ts";
import { defineCommand } from "../command.ts";
import { type AtHand, credentialAtHand } from "../credentials/at-hand.ts";
import { exampleCommand, helloCommand, runExample } from "../example.ts";
import {
  type Choice,
  type ChoiceOptions,
  chooseImage,
  IMAGE_OPTIONS,
  isSame,
  readChoice,
} from "../install/image.ts";
import { installCopy, installSteps } from "../install/install.ts";
import { otherImageText } from "../install/other-image.ts";
import { INSTANCE_OPTIONS, type Instance, ROOT } from "../instance.ts";
import { countKeys, describeMode, type Mode, modeOf } from "../mode.ts";
import { Problem } from "../problem.ts";
import { waitReady } from "../readiness.ts";
import { findCopy } from "../running-copy.ts";
import { demandGoodSettings, resolveChecked, settingsWarnings } from "../settings/check.ts";
import { settingsSinceStart } from "../settings/started.ts";
import { type Switches, withSwitches } from "../settings/switches.ts";
import type { Environment } from "../settings.ts";
import { sized } from "../sizing.ts";
import { stopBackground } from "../supervisor/background.ts";
import { runInForeground } from "../supervisor/foreground.ts";
import { demandFreePorts, makeFolders } from "../supervisor/ground.ts";
import { fileSize, logPath, readFrom } from "../supervisor/logs.ts";
import { readState, readStoredState, type State } from "../supervisor/state.ts";
import { type CopyFlags, startAgain, svcLine } from "../svc-line.ts";
import { thisMachine } from "../system/memory.ts";
import { END_SIGNALS, exitCodeOf, sleep, waitGone } from "../system/process.ts";
import { continueAsRoot } from "../system/root.ts";
import { notifyReady } from "../systemd/notify.ts";
import { type Note, Progress, paint } from "../terminal.ts";

const OPTIONS = {
  detach: { short: "d", doc: "Start in the background; ./svc down ends it." },
  "no-example": { doc: "Do not run the example at the end." },
  ...IMAGE_OPTIONS,
  sessions: {
    doc: "Runs continue sessions: files stay, and Python's variables (SVC_PERSIST_SESSIONS; not remembered).",
  },
  microvm: {
    doc: "Programs run in microVMs, each with a kernel of its own (KVM_ENABLED; not remembered).",
  },
  ...INSTANCE_OPTIONS,
} as const;

export const up = defineCommand({
  usage:
    "up [-d] [--no-example] [--languages LIST] [--packages LIST] [--mirror URL] [--sessions] [--microvm]",
  summary: "Starts everything on this machine; installs and builds what is missing first.",
  details: `
The public API listens on http://127.0.0.1:3112 without authentication, for this machine only, unless a setting turns
authentication on: LOCAL_MODE=false, SVC_AUTH_PROVIDER=librechat-jwt, a source of SVC_JWT_* keys, or SVC_API_KEYS_FILE.
Settings are environment variables, and KEY=value lines of svc.env in the data folder (docs/configuration.md); all are
checked before anything is installed. ./svc config shows them.
A choice of languages or packages holds for this copy until you make another one (docs/packages.md).
Sessions are kept by a copy started with --sessions or SVC_PERSIST_SESSIONS=true (docs/sessions.md).
With --microvm or KVM_ENABLED=true it installs QEMU and builds what microVMs start from (docs/microvm.md).
Without -d it stays in the foreground and shows warnings; Ctrl-C ends everything.`,
  options: OPTIONS,
  run: async ({ values }, configured) => {
    const asRoot = await continueAsRoot(process.argv.slice(2), "the jail");
    if (asRoot !== undefined) return asRoot;
    const settings = withSwitches(configured, values);
    const instance = resolveChecked(values, process.env);
    const chosen = () => chooseImage(values, settings.values, readChoice(instance.dataDir));
    const running = await untilEnded(findCopy(values).state);
    if (running !== undefined) {
      demandImage(running, values, chooseImage(values, {}, readChoice(instance.dataDir)));
      demandMode(running, values);
    }
    for (const warning of settingsWarnings(settings, process.env, instance))
      console.error(`warning: ${warning}`);
    await demandGoodSettings(instance, settings.values, values);
    if (running !== undefined)
      return await sayRunning(running, instance, { choice: chosen(), settings: settings.values });
    const choice = chosen();
    await demandFreePorts(instance, settings.values);
    makeFolders(instance);
    const mode = modeOf(settings.values);
    const atHand = credentialAtHand(instance, mode, settings.values);
    const example = !values["no-example"] && (!mode.isAuthenticated || atHand.mint !== undefined);
    const progress = new Progress(installSteps(settings.values) + (example ? 2 : 1));
    await installCopy(instance, choice, settings.values, progress);
    const showReady = async (step: (note: Note) => Promise<void>) => {
      const { notice } = sized(settings.values, thisMachine(), languagesOf(instance));
      if (notice !== undefined) console.log(notice);
      await progress.step("Starting, until a canary run has passed", step);
      await notifyReady(process.env);
      if (example) await showExample(instance, progress, atHand);
      else showHello(instance, atHand);
      await showAddress(instance, mode, values.detach);
    };
    if (!values.detach) return await runInForeground(instance, showReady);
    await showReady((note) => startInBackground(values, instance, note));
    return 0;
  },
});

/** A running copy keeps its settings, so these options cannot be switched on. */
function demandMode({ url, mode }: State, { sessions, microvm }: Switches): void {
  const missing = [
    ...(sessions && !mode?.keepsSessions ? ["sessions"] : []),
    ...(microvm && !mode?.usesMicrovms ? ["microVMs"] : []),
  ];
  if (missing.length === 0) return;
  throw new Problem(
    `${missing.join(" and ")} cannot be switched on while it is running: ${url}`,
    `${svcLine("down")}, then the same command again; data and files stay`,
  );
}

/** A running copy keeps its root image. `choice`: what the options ask for. */
function demandImage(
  { url, dataDir }: State,
  { languages, packages, mirror }: ChoiceOptions,
  choice: Choice,
): void {
  if (isSame(choice, readChoice(dataDir) ?? choice)) return;
  const what = [languages && "languages", packages && "packages", mirror && "the mirror"]
    .filter(Boolean)
    .join(" and ");
  throw new Problem(
    `${what} cannot be changed while it is running: ${url}`,
    `${svcLine("down")}, then the same command again; data and files stay`,
  );
}

/** Waits for a copy that is stopping. Returns the state of the copy that runs afterwards, if any. */
async function untilEnded(state: State | undefined): Promise<State | undefined> {
  if (state?.phase !== "stopping") return state;
  console.error("waiting: the copy that runs is ending");
  return (await waitGone(state.supervisor, (state.stopSeconds ?? 0) * 1000)) ? undefined : state;
}

async function sayRunning(
  state: State,
  instance: Instance,
  wanted: { choice: Choice; settings: Environment },
): Promise<number> {
  await waitReady(
    { ...instance, url: state.url, ports: state.ports },
    {
      note: (line) => console.error(line),
      isEnding: () => (readState(instance.runDir)?.phase ?? "stopping") === "stopping",
    },
  );
  const mode = state.mode && (await modeText(state.mode));
  const shownMode = mode === undefined ? "" : ` (${mode})`;
  console.log(
    `Already running: ${state.url}${shownMode}, pid ${state.supervisor.pid}, data in ${state.dataDir}.`,
  );
  const next = await modeText(modeOf(wanted.settings));
  if (mode !== undefined && next !== mode)
    console.log(`The settings now say: ${next}. It has that after ${startAgain()}.`);
  const others = settingsSinceStart(instance.runDir, wanted.settings);
  if (others.length > 0)
    console.log(
      `Settings that are not those of its start: ${others.join(", ")}. They count after ${startAgain()}.`,
    );
  if (!isSame(wanted.choice, readChoice(instance.dataDir) ?? wanted.choice)) {
    console.log(otherImageText());
  }
  console.log(`${svcLine("down")} ends it.`);
  return 0;
}

/** Starts the supervisor as a separate process. When the copy does not become ready, the supervisor is stopped again. */
async function startInBackground(values: CopyFlags, instance: Instance, note: Note): Promise<void> {
  const logFile = logPath(instance.logsDir, "supervisor");
  const log = openSync(logFile, "a", 0o600);
  const offset = fileSize(logFile);
  const args = [join(ROOT, "cli/src/main.ts"), "supervise", ...superviseOptions(values, instance)];
  const child = spawn(process.execPath, args, { cwd: "/", detached: true, stdio: ["ignore", log, log] });
  closeSync(log);
  child.unref();
  const ended = new AbortController();
  // Another start on the same data folder may have been faster. The supervisor of that start keeps running.
  const isUp = () => readStoredState(instance.runDir)?.supervisor.pid === child.pid;
  const interruption = new Promise<never>((_, reject) => {
    for (const signal of END_SIGNALS) {
      process.once(signal, () =>
        reject(new Problem("interrupted: it was ended before it was ready", undefined, exitCodeOf(signal))),
      );
    }
  });
  const failed = new Promise<never>((_, reject) => {
    child.once("exit", (code, signal) => {
      ended.abort();
      reject(endOf(signal ?? `exit code ${code}`, readFrom(logFile, offset).trim()));
    });
  });
  const started = (async () => {
    while (!ended.signal.aborted && !isUp()) await sleep(10);
    await waitReady(instance, { note, isEnding: () => ended.signal.aborted });
  })();
  try {
    await Promise.race([failed, started, interruption]);
  } catch (error) {
    ended.abort();
    started.catch(() => undefined);
    if (isUp()) await stopBackground(instance);
    else child.kill();
    throw error;
  } finally {
    child.removeAllListeners("exit");
    for (const signal of END_SIGNALS) process.removeAllListeners(signal);
  }
}

/** `said`: the output of the supervisor. An error message in it becomes the message of this command. */
function endOf(how: string, said: string): Problem {
  const [, own] = /^error: (.*)$/ms.exec(said) ?? [];
  return own === undefined ? new Problem(`the supervisor ended (${how})`, said) : new Problem(own);
}

/** The supervisor inherits the settings through its environment. It runs in another working directory, so paths must be absolute. */
function superviseOptions({ "port-offset": offset, settings }: CopyFlags, { dataDir }: Instance) {
  return [
    ...["--data-dir", dataDir],
    ...(offset === undefined ? [] : ["--port-offset", offset]),
    ...(settings === undefined ? [] : ["--settings", resolve(settings)]),
  ];
}

/** Prints commands that work as they are, for a start without the example. */
function showHello({ url }: Instance, { words, note }: AtHand): void {
  console.log(`Try: ${helloCommand(url, words)}`);
  console.log(`The example: ${exampleCommand(words)}`);
  if (note !== undefined) console.log(note);
}

async function showExample(instance: Instance, progress: Progress, { words, mint }: AtHand): Promise<void> {
  const example = await progress.step("The example: cli/example/report.py over sales.csv", () =>
    runExample(instance, { token: mint?.(), words }),
  );
  console.log(`\n${example.stdout.trimEnd()}\n`);
  console.log(`The plot: ${example.plotPath} (the run took ${example.seconds.toFixed(2)} s)\n`);
  console.log("The same with curl:");
  for (const { title, command } of example.curl) {
    console.log(`  ${paint(process.stdout, "dim", `# ${title}`)}\n  ${command}`);
  }
}

async function showAddress(instance: Instance, mode: Mode, detach: boolean): Promise<void> {
  const address = paint(process.stdout, "green", `${instance.url}/v1`);
  console.log(`\nReady: ${address} (${await modeText(mode)})\nData and logs: ${instance.dataDir}`);
  console.log(`${detach ? svcLine("down") : "Ctrl-C"} ends it.`);
}

async function modeText(mode: Mode): Promise<string> {
  return describeMode(mode, await countKeys(mode));
}
