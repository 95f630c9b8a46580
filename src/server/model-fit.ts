import type { ModelStatus } from '../runtime/requests/model-host.ts';

/** Whether a model can be loaded: now, when idle ones have gone, or not at all; `unknown`: nobody knows what is free. */
export type ModelFit = 'yes' | 'after_unload' | 'no' | 'unknown';

/** Compares what a file needs at least with the budget for models and the memory of the machine. */
export function fitOf(
  neededBytes: number,
  statuses: readonly Pick<ModelStatus, 'heldBytes' | 'numUsers'>[],
  { budgetBytes, freeBytes }: { readonly budgetBytes: number | null; readonly freeBytes: number | null },
): ModelFit {
  const sum = (some: typeof statuses): number => some.reduce((total, { heldBytes }) => total + heldBytes, 0);
  const heldBytes = sum(statuses);
  const idleBytes = sum(statuses.filter(({ numUsers }) => numUsers === 0));
  const ofBudget = (budgetBytes ?? Infinity) - heldBytes;
  const free = freeBytes ?? (budgetBytes === null ? Number.NaN : Infinity);
  if (Number.isNaN(free)) return 'unknown';
  if (neededBytes <= Math.min(ofBudget, free)) return 'yes';
  return neededBytes <= Math.min(ofBudget, free) + idleBytes ? 'after_unload' : 'no';
}
