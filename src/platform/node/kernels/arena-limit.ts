import { constants } from 'node:buffer';

/** Node before 22 has no ArrayBuffer beyond 4 GiB: a larger model must hear that, not that memory is short. */
export const ARENA = { maxArenaBytes: constants.MAX_LENGTH };
