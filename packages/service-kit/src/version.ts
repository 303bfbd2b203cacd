/** The version of this code, as answers and logs tell it. All packages of the repository have the same. */
import manifest from "../package.json" with { type: "json" };

export const VERSION: string = manifest.version;
