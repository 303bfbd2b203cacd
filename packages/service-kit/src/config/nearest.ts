/** Finds the known name that a misspelt one probably means. Pure. */

/** The known name with the smallest edit distance. */
export function nearestName(name: string, names: readonly string[]): string {
  let best = names[0] ?? "";
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of names) {
    const distance = editDistance(name, candidate);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Like nearestName, but compares in upper case. Undefined when more than a third of the name would have to change. */
export function likelyName(name: string, names: readonly string[]): string | undefined {
  const upper = name.toUpperCase();
  const nearest = nearestName(upper, names);
  return editDistance(upper, nearest) * 3 <= upper.length ? nearest : undefined;
}

/** Unknown names that are close to a known one and so probably mean it. */
export function misspelt(
  given: readonly string[],
  names: readonly string[],
): { name: string; meant: string }[] {
  const known = new Set(names);
  return given
    .filter((name) => !known.has(name))
    .flatMap((name) => {
      const near = names.filter((candidate) => Math.abs(candidate.length - name.length) <= NEAR);
      const meant = nearestName(name, near);
      return near.length > 0 && editDistance(name, meant) <= NEAR ? [{ name, meant }] : [];
    });
}

/** Allows two swapped letters, which are two edits. */
const NEAR = 2;

/** The Levenshtein distance: how many characters to insert, remove or replace. */
export function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i++) {
    const next = [i];
    for (let j = 1; j <= right.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1);
      next.push(Math.min(substitution, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[right.length] ?? 0;
}
