import type { ModelStatus } from '../runtime/requests/model-host.ts';

/** Whether a model can be loaded: now, after unloading idle models, or not at all; `unknown`: its memory or the free memory is not known. */
export type ModelFit = 'yes' | 'after_unload' | 'no' | 'unknown';

/** Compares the memory that a model requires with the model budget and the free memory. */
export function fitOf(
  neededBytes: number | null,
  statuses: readonly Pick<ModelStatus, 'heldBytes' | 'numUsers'>[],
  { budgetBytes, freeBytes }: { readonly budgetBytes: number | null; readonly freeBytes: number | null },
): ModelFit {
  if (neededBytes === null) return 'unknown';
  const sum = (models: typeof statuses): number => models.reduce((total, { heldBytes }) => total + heldBytes, 0);
  const heldBytes = sum(statuses);
  const idleBytes = sum(statuses.filter(({ numUsers }) => numUsers === 0));
  const budgetLeft = (budgetBytes ?? Infinity) - heldBytes;
  const free = freeBytes ?? (budgetBytes === null ? Number.NaN : Infinity);
  if (Number.isNaN(free)) return 'unknown';
  if (neededBytes <= Math.min(budgetLeft, free)) return 'yes';
  return neededBytes <= Math.min(budgetLeft, free) + idleBytes ? 'after_unload' : 'no';
}
