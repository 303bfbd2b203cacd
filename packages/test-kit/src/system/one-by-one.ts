/** Settings for tests that end single components while the others go on: each is a process of its own. */
export const ONE_BY_ONE = { SVC_TOPOLOGY: "separate" } as const;
