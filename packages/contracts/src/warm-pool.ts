/** How many warm jails wait for a job. The runner keeps this many, and jaild has room for them. */

const AUTOMATIC_MOST = 4;

/** The number of warm jails for one zygote. */
export function warmPoolSize(config: {
  SANDBOX_WARM_START: boolean;
  SANDBOX_WARM_POOL: number;
  SANDBOX_MAX_CONCURRENT_JOBS: number;
}): number {
  if (!config.SANDBOX_WARM_START) return 0;
  return config.SANDBOX_WARM_POOL || Math.min(config.SANDBOX_MAX_CONCURRENT_JOBS, AUTOMATIC_MOST);
}

/** The number of pre-started interpreters for all languages together. `least`: how many of each language wait on an idle machine. */
export function prestartedPoolSize(size: number, least: readonly number[]): number {
  return Math.max(
    size,
    least.reduce((sum, own) => sum + Math.min(own, size), 0),
  );
}
