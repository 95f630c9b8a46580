/** The tenant of calls that name none. */
export const DEFAULT_TENANT = 'local';
