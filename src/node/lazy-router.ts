import type { Router, RouterOptions } from '../runtime/requests/router.ts';

/** Puts several models, local or remote, behind one name and chooses one for each request. */
export async function openRouter(options: RouterOptions): Promise<Router> {
  // Loaded with the first call: programs with one model need no router.
  const { createRouter } = await import('../runtime/requests/router.ts');
  return createRouter({ environment: process.env, ...options });
}
