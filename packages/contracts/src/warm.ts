/** How many jails of one zygote wait for a job: what the runner keeps and what jaild has room for. */

const AUTOMATIC_MOST = 4;

export function warmPoolSize(config: {
  SANDBOX_WARM_START: boolean;
  SANDBOX_WARM_POOL: number;
  SANDBOX_MAX_CONCURRENT_JOBS: number;
}): number {
  if (!config.SANDBOX_WARM_START) return 0;
  return config.SANDBOX_WARM_POOL || Math.min(config.SANDBOX_MAX_CONCURRENT_JOBS, AUTOMATIC_MOST);
}
