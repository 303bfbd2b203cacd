/** The error of this kind that the call throws, and undefined when it returns. Any other error goes through. */
export function thrown<E extends Error>(
  kind: abstract new (...args: never[]) => E,
  call: () => unknown,
): E | undefined {
  try {
    call();
    return undefined;
  } catch (error) {
    if (error instanceof kind) return error;
    throw error;
  }
}
