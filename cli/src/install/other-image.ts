/**
 * Tells whether the settings ask for another image than a running copy has. The copy gets that image only at its next start.
 */

import { Problem } from "../problem.ts";
import type { Environment } from "../settings.ts";
import { startAgain } from "../svc-line.ts";
import { chooseImage, isSame, readChoice } from "./image.ts";

export const otherImageText = () =>
  `SVC_LANGUAGES or SVC_PACKAGES ask for other languages or packages. It has them after ${startAgain()}.`;

/** Invalid values also count as another image: the next start refuses them. */
export function asksForOtherImage(dataDir: string, settings: Environment): boolean {
  try {
    const before = readChoice(dataDir);
    return before !== undefined && !isSame(chooseImage({}, settings, before), before);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return true;
  }
}
