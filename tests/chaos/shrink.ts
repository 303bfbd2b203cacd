/**
 * The shortest list of faults that still fails, by delta debugging: parts are left out as long as what remains fails, larger parts
 * first. The number of attempts is bounded, and a list that fails only sometimes may stay longer than it must be. Pure.
 */

export interface Shrunk<Item> {
  items: readonly Item[];
  attempts: number;
}

export async function shrink<Item>(
  items: readonly Item[],
  stillFails: (items: readonly Item[]) => Promise<boolean>,
  mostAttempts: number,
): Promise<Shrunk<Item>> {
  let left = items;
  let attempts = 0;
  let size = Math.ceil(left.length / 2);
  while (left.length > 0 && size > 0) {
    let isShorter = false;
    for (let at = 0; at < left.length && attempts < mostAttempts; ) {
      const without = [...left.slice(0, at), ...left.slice(at + size)];
      attempts++;
      if (await stillFails(without)) {
        left = without;
        isShorter = true;
      } else at += size;
    }
    if (attempts >= mostAttempts) break;
    if (size === 1 && !isShorter) break;
    size = size === 1 ? 1 : Math.ceil(size / 2);
  }
  return { items: left, attempts };
}
