/** The paths of a request's own files in the workspace. Pure. */
import { directoriesOf } from "@svc/contracts";

/** The request's own files take precedence over the members of a snapshot. */
export class OwnPaths {
  readonly #files: ReadonlySet<string>;
  readonly #directories: ReadonlySet<string>;

  constructor(files: readonly string[], directories: readonly string[]) {
    this.#files = new Set(files);
    const made = [
      ...files.flatMap(directoriesOf),
      ...directories.flatMap((path) => [...directoriesOf(path), path]),
    ];
    this.#directories = new Set(made);
  }

  /** Whether the member cannot stand beside the request's files. A directory can be shared. */
  excludes({ type, path }: { type: string; path: string }): boolean {
    if (this.#files.has(path) || directoriesOf(path).some((directory) => this.#files.has(directory)))
      return true;
    return type !== "directory" && this.#directories.has(path);
  }

  /** Whether the path is one of the request's files or directories, or one of them lies in it. */
  isIn(directory: string): boolean {
    return this.#directories.has(directory) || this.#files.has(directory);
  }
}
