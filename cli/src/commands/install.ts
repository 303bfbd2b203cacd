/** `./svc install`: makes this copy a systemd service, which starts with the machine. */
import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { defineCommand } from "../command.ts";
import { type ChoiceOptions, chooseImage, IMAGE_OPTIONS, readChoice } from "../install/image.ts";
import { installCopy, installSteps } from "../install/install.ts";
import { dataFolder, INSTANCE_OPTIONS, type Instance } from "../instance.ts";
import { Problem } from "../problem.ts";
import { demandGoodSettings, resolveChecked, settingsWarnings } from "../settings/check.ts";
import { fileSettings, type Settings, settingsPath } from "../settings/sources.ts";
import { demandFreePorts, makeFolders } from "../supervisor/ground.ts";
import { readState, type State } from "../supervisor/state.ts";
import { svcLine } from "../svc-line.ts";
import { replaceFile } from "../system/replace-file.ts";
import { continueAsRoot } from "../system/root.ts";
import { installedUnit, lostVariables, MADE_ELSEWHERE, specOf, UNIT_PATH } from "../systemd/spec.ts";
import { isSystemdRunning, mainPid, startUnit, systemctl } from "../systemd/systemctl.ts";
import { UNIT_NAME, unitText } from "../systemd/unit.ts";
import { Progress } from "../terminal.ts";

export const install = defineCommand({
  usage: "install [--print] [--languages LIST] [--packages LIST] [--mirror URL]",
  summary: "Makes this copy a service of systemd: it starts with the machine, and again when it fails.",
  details: `
Checks the settings as ./svc up does, installs and builds what is missing, writes ${UNIT_PATH},
enables and starts it. After an upgrade the same command builds what changed and restarts the service. Settings come from
the settings file, not from the shell. Languages and packages that were chosen stay those of this copy until others are
named (docs/packages.md). Data stay where they are. ./svc uninstall undoes it; docs/deploy.md says more.`,
  options: {
    print: { doc: "Print the unit and change nothing." },
    ...IMAGE_OPTIONS,
    ...INSTANCE_OPTIONS,
  },
  run: async ({ values }, { file }) => {
    const copy = { ...values, "data-dir": dataFolder(values, process.env) };
    const settings = fileSettings(file);
    if (values.print) {
      warnOfShell(copy["data-dir"]);
      process.stdout.write(unitText(specOf(copy, resolveChecked(copy, settings.values), settings.values)));
      return 0;
    }
    const asRoot = await continueAsRoot(process.argv.slice(2), "a service of systemd");
    if (asRoot !== undefined) return asRoot;
    warnOfShell(copy["data-dir"]);
    const instance = resolveChecked(copy, settings.values);
    const running = demandPlace(instance);
    for (const warning of settingsWarnings(settings, {}, instance)) console.error(`warning: ${warning}`);
    await demandGoodSettings(instance, settings.values, values, overruled(values, settings));
    const spec = specOf(copy, instance, settings.values);
    if (isSystemdRunning()) await demandFreePorts(instance, settings.values, running?.ports);
    const choice = chooseImage(values, settings.values, readChoice(instance.dataDir));
    const progress = new Progress(installSteps(settings.values) + 1);
    makeWritable(instance, spec.writable);
    await installCopy(instance, choice, settings.values, progress);
    writeUnit(unitText(spec));
    console.log(`Written: ${UNIT_PATH}`);
    if (!isSystemdRunning()) {
      console.log("systemd does not run here, so nothing is enabled or started. Where it runs:");
      console.log(`  systemctl daemon-reload && systemctl enable --now ${UNIT_NAME}`);
      return 0;
    }
    await progress.step("Starting the service, until a canary run has passed", async () => {
      await systemctl("daemon-reload");
      await systemctl("enable", UNIT_NAME);
      await startUnit();
    });
    console.log(`Running: ${instance.url}/v1 (systemctl status ${UNIT_NAME}, journalctl -u ${UNIT_NAME})`);
    return 0;
  },
});

/**
 * Options that would have no effect on the service: it starts with its settings, and these override the remembered choice.
 */
function overruled(options: ChoiceOptions, { values, file }: Settings): string[] {
  const pairs = [
    ["languages", "SVC_LANGUAGES"],
    ["packages", "SVC_PACKAGES"],
  ] as const;
  return pairs
    .filter(([name, variable]) => options[name] !== undefined && Boolean(values[variable]))
    .map(
      ([name, variable]) =>
        `--${name}: ${file} sets ${variable}, which the service follows. Change it there.`,
    );
}

function warnOfShell(dataDir: string): void {
  const lost = lostVariables();
  if (lost.length === 0) return;
  console.error(`warning: the service does not get what this shell sets: ${lost.join(", ")}`);
  console.error(`Put it into ${settingsPath(dataDir, process.env)} (docs/deploy.md).`);
}

/**
 * Throws a Problem when the unit belongs to another copy, or when this copy runs outside systemd. Returns the state of the
 * running service.
 */
function demandPlace(instance: Instance): State | undefined {
  if (installedUnit() === "other") {
    throw new Problem(
      `${UNIT_PATH} was not made by this working copy`,
      `${MADE_ELSEWHERE} ${svcLine("install --print")} shows ours.`,
    );
  }
  const running = readState(instance.runDir);
  if (running === undefined) return undefined;
  if (isSystemdRunning() && running.supervisor.pid === mainPid()) return running;
  throw new Problem(
    `${instance.dataDir} is in use by a copy that systemd does not know (pid ${running.supervisor.pid})`,
    `End it with ${svcLine("down")}, or Ctrl-C where it runs, then run ${svcLine("install")} again.`,
  );
}

/**
 * systemd does not start a unit whose writable folders are missing. `makeFolders` sets the mode of the data folder, which
 * the components' users must be able to pass through.
 */
function makeWritable(instance: Instance, folders: readonly string[]): void {
  makeFolders(instance);
  for (const folder of folders) if (!existsSync(folder)) mkdirSync(folder, { recursive: true, mode: 0o700 });
}

function writeUnit(text: string): void {
  mkdirSync(dirname(UNIT_PATH), { recursive: true });
  replaceFile(UNIT_PATH, text, { mode: 0o644 });
}
