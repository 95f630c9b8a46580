import { RuvLLMError } from '../../core/errors.ts';
import { isAlive, type ModelSlot } from './model-slot.ts';

/** Limits on the models that are loaded at the same time. */
export interface RoomLimits {
  /** Most bytes of loaded models together; null: no limit of its own. */
  readonly budgetBytes: number | null;
  /** Most loaded models of each group. */
  readonly groups: ReadonlyMap<string, number>;
}

/** `ready`: load it; `wait`: until a model is idle; a slot: unload this one first. */
export type RoomPlan = 'ready' | 'wait' | ModelSlot;

const isPinned = ({ entry }: ModelSlot): boolean => entry.isPinned === true;

const sumBytes = (slots: readonly ModelSlot[]): number =>
  slots.reduce((total, { reservedBytes }) => total + reservedBytes, 0);

/** A model in use stays, and so does a pinned one; one whose engine was lost is of no use to anyone. */
const canUnload = (slot: ModelSlot): boolean =>
  slot.model !== null && (!isAlive(slot) || (slot.numUsers === 0 && !isPinned(slot)));

/** The model not used for longest, of those that may go. */
function findVictim(slots: readonly ModelSlot[]): ModelSlot | 'wait' {
  return slots.filter(canUnload).sort((a, b) => a.lastUsed - b.lastUsed)[0] ?? 'wait';
}

/** The next step towards room for a model. Throws `out_of_memory` if it can never have it. */
export function planRoom(slots: Iterable<ModelSlot>, wanted: ModelSlot, limits: RoomLimits): RoomPlan {
  const { id, sizeBytes, group = null } = wanted.entry;
  const others = [...slots].filter((slot) => slot !== wanted);
  const neededBytes = sizeBytes ?? 0;
  const budgetBytes = limits.budgetBytes ?? Infinity;
  const pinnedBytes = sumBytes(others.filter(isPinned));
  if (pinnedBytes + neededBytes > budgetBytes) {
    const pinned = pinnedBytes === 0 ? '' : `, of which pinned models hold ${pinnedBytes}`;
    throw new RuvLLMError(
      'out_of_memory',
      `model ${id} takes ${neededBytes} bytes, the budget for models is ${budgetBytes}${pinned}`,
      { data: { neededBytes, budgetBytes, pinnedBytes } },
    );
  }
  const loadedInGroup =
    group === null ? [] : others.filter(({ entry, model }) => entry.group === group && model !== null);
  if (group !== null && loadedInGroup.length >= (limits.groups.get(group) ?? Infinity))
    return findVictim(loadedInGroup);
  return sumBytes(others) + neededBytes > budgetBytes ? findVictim(others) : 'ready';
}

/** Rejects groups whose pinned models leave no room for the others. */
export function checkGroups(slots: readonly ModelSlot[], groups: RoomLimits['groups']): void {
  for (const [group, maxLoaded] of groups) {
    const members = slots.filter(({ entry }) => entry.group === group);
    const numPinned = members.filter(isPinned).length;
    if (numPinned < maxLoaded || (numPinned === maxLoaded && numPinned === members.length)) continue;
    throw new RuvLLMError(
      'invalid_option',
      `group ${JSON.stringify(group)} holds at most ${maxLoaded} loaded models; ${numPinned} of its ${members.length} models are pinned`,
      { data: { group, maxLoaded, numPinned } },
    );
  }
}
