// Kernels for single vectors of the thread that serves requests. A module of their own: `small-bytes.ts` has its bytes.
export { findNear, rankRows, takeSigns } from './sign-search';
export { removeDirections, rotate } from './rotate';
