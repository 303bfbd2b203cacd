/** How many times slower than an ordinary one the machine of the tests is (TEST_SLOWNESS): in an emulated one, a lot. */
export const SLOWNESS = Number(process.env.TEST_SLOWNESS ?? 1);

/** A time that an ordinary machine keeps, on this one. */
export const slow = (time: number): number => time * SLOWNESS;

/** How often to repeat something: less often on a slow machine, but not as much less as it is slower. */
export const times = (count: number): number => Math.ceil(count / Math.sqrt(SLOWNESS));
