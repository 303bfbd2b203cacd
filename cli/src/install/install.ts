/**
 * Prepares a machine for a start: Debian packages, the jail, the root image, the components. Each step first checks what is
 * missing, and does nothing when nothing is. It announces what it installs before it does.
 */
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { type Instance, ROOT } from "../instance.ts";
import { buildGuest } from "../microvm/image.ts";
import type { Environment } from "../settings.ts";
import { mustRun } from "../system/run.ts";
import type { Note, Progress } from "../terminal.ts";
import { usesMicrovms } from "../topology.ts";
import { buildBundles } from "./bundles.ts";
import {
  buildImage,
  type Choice,
  contentOf,
  type ImageContent,
  imageText,
  rememberChoice,
  type WantedImage,
} from "./image.ts";
import { installPackages, missingPackages, type Purpose } from "./packages.ts";

/** Number of steps that `install` shows. */
export const INSTALL_STEPS = 4;
/** Number of steps that `installCopy` shows. */
export const installSteps = (caller: Environment) => INSTALL_STEPS + (usesMicrovms(caller) ? 1 : 0);

export async function install(
  purposes: readonly Purpose[],
  instance: Instance,
  progress: Progress,
  image: WantedImage,
): Promise<void> {
  await progress.step("Debian packages", async (note) => {
    const missing = missingPackages(...purposes);
    if (missing.length > 0) await installPackages(missing, note);
  });
  await progress.step("The jail (make -C jail)", buildJail);
  await progress.step("The root image of the jails", async (note) => {
    await buildImage(instance, image, note);
  });
  await progress.step("The components (esbuild)", () => buildBundles());
}

/** Like `install`, for one copy: moves the copy's image link and stores its choice. Prints how the copy's image changes. */
export async function installCopy(
  instance: Instance,
  choice: Choice,
  caller: Environment,
  progress: Progress,
): Promise<void> {
  const before = contentOf(instance.image);
  const isVirtual = usesMicrovms(caller);
  const purposes: Purpose[] = isVirtual ? ["run", "microvm"] : ["run"];
  await install(purposes, instance, progress, { choice, link: instance.image });
  if (isVirtual)
    await progress.step("The kernel and the root image of microVMs", (note) =>
      buildGuest(instance, caller, note),
    );
  rememberChoice(instance.dataDir, choice);
  const news = imageNews(before, contentOf(instance.image));
  if (news !== undefined) console.log(news);
}

/** Undefined when a copy got its first image, or keeps the one that it has. */
export function imageNews(
  before: ImageContent | undefined,
  now: ImageContent | undefined,
): string | undefined {
  if (before === undefined || now === undefined || now.folder === before.folder) return undefined;
  const [old, text] = [imageText(before), imageText(now)];
  return old === text
    ? `The root image is a newer one with the same content: ${text}`
    : `The root image has changed.\n  before: ${old}\n  now:    ${text}`;
}

const make = (...targets: readonly string[]) => [
  ...["make", "--silent", `-j${availableParallelism()}`, "-C", join(ROOT, "jail")],
  ...targets,
];

export async function buildJail(note: Note): Promise<void> {
  await mustRun(make(), "building the jail", { onLine: note });
}

/** Builds what tests need besides jaild itself. It runs before the tests, so that parallel tests find nothing to build. */
export async function buildJailTests(note: Note): Promise<void> {
  await mustRun(make("faults", "build/unit"), "building the tests of the jail", { onLine: note });
}
