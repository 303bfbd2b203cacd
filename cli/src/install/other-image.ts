/** Whether settings ask for another image than a running copy has: it gets one at its next start alone. */

import { Problem } from "../problem.ts";
import type { Environment } from "../settings.ts";
import { startAgain } from "../svc-line.ts";
import { chooseImage, isSame, readChoice } from "./image.ts";

export const otherImageText = () =>
  `SVC_LANGUAGES or SVC_PACKAGES ask for other languages or packages. It has them after ${startAgain()}.`;

/** Values that no image could have are others, too: the next start refuses them. */
export function asksForOtherImage(dataDir: string, settings: Environment): boolean {
  try {
    const before = readChoice(dataDir);
    return before !== undefined && !isSame(chooseImage({}, settings, before), before);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return true;
  }
}
