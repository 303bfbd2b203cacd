/**
 * Brings a machine to the point where the system can start: Debian packages, the jail, the root image, the components. Each step looks
 * first and does nothing when nothing is missing. Says what it installs before it does.
 */
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { findLanguage, LANGUAGES } from "@svc/contracts/languages";
import { NODE } from "../components.ts";
import { type Instance, ROOT } from "../instance.ts";
import { Problem, USAGE_EXIT_CODE } from "../problem.ts";
import { settingOf } from "../settings.ts";
import { mustRun } from "../system/run.ts";
import type { Note, Progress } from "../terminal.ts";
import { buildBundles } from "./bundles.ts";
import { installPackages, missingPackages, type Purpose } from "./packages.ts";

/** Number of steps that `install` shows. */
export const INSTALL_STEPS = 4;

const ESBUILD = join(ROOT, `node_modules/@esbuild/${process.platform}-${process.arch}/bin/esbuild`);

/** `languages`: what the image shall have besides Python, Bash, JavaScript and TypeScript; undefined: what it has now. */
export async function install(
  purposes: readonly Purpose[],
  instance: Instance,
  progress: Progress,
  languages?: string,
): Promise<void> {
  await progress.step("Debian packages", async (note) => {
    const missing = missingPackages(...purposes);
    if (missing.length > 0) await installPackages(missing, note);
  });
  await progress.step("The jail (make -C jail)", async (note) => {
    await mustRun(
      ["make", "--silent", `-j${availableParallelism()}`, "-C", join(ROOT, "jail")],
      "building the jail",
      {
        onLine: note,
      },
    );
  });
  await progress.step("The root image of the jails", async (note) => {
    await buildImage(instance, languages, note);
  });
  await progress.step("The components (esbuild)", buildBundles);
}

/** What tests run besides jaild itself. Made before them: tests beside each other find nothing to make. */
export async function buildJailTests(note: Note): Promise<void> {
  const make = [
    "make",
    "--silent",
    `-j${availableParallelism()}`,
    "-C",
    join(ROOT, "jail"),
    "faults",
    "build/unit",
  ];
  await mustRun(make, "building the tests of the jail", { onLine: note });
}

/** Makes the root image of the jails, unless it is as it shall be. */
export async function buildImage(
  instance: Instance,
  languages: string | undefined,
  note: Note,
): Promise<void> {
  await mustRun(imageCommand(instance, languages), "building the root image", { onLine: note });
}

/** A comma list of language names, or `all`, as names of runtime folders. */
export function runtimeNames(list: string): string {
  const names = list.split(",").map((name) => name.trim());
  return names
    .filter((name) => name !== "")
    .map((name) => {
      if (name.toLowerCase() === "all") return "all";
      const language = findLanguage(name);
      if (language !== undefined) return language.runner;
      const known = LANGUAGES.map(({ lang }) => lang).join(", ");
      throw new Problem(`there is no language ${name}`, `Known: all, ${known}`, USAGE_EXIT_CODE);
    })
    .join(",");
}

function imageCommand(instance: Instance, languages: string | undefined): string[] {
  const names = languages === undefined ? "" : runtimeNames(languages);
  const chosen = names === "" ? [] : ["--languages", names];
  const build = join(ROOT, "runtimes/image/build");
  return [
    build,
    "--out",
    instance.packagesDir,
    "--node",
    NODE,
    "--esbuild",
    ESBUILD,
    "--progress",
    ...chosen,
    ...(settingOf("SVC_IMAGE_STRICT", process.env) ? ["--strict"] : []),
  ];
}
