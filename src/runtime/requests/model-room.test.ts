import { expect, test } from 'vitest';
import type { Model } from '../model.ts';
import { checkGroups, planRoom, type RoomLimits } from './model-room.ts';
import { createSlot, type ModelEntry, type ModelSlot } from './model-slot.ts';

interface Given extends Partial<ModelEntry> {
  /** Absent: loaded and alive. */
  readonly state?: 'unloaded' | 'lost';
  readonly numUsers?: number;
  readonly lastUsed?: number;
}

function slotOf(id: string, { state, numUsers = 0, lastUsed = 0, ...entry }: Given = {}): ModelSlot {
  const slot = createSlot({ id, aliases: [], created: 0, sizeBytes: 40, load: () => Promise.reject(new Error()), ...entry }, false); // prettier-ignore
  if (state !== 'unloaded') {
    slot.model = { isLoaded: () => state !== 'lost' } as Model;
    slot.reservedBytes = slot.entry.sizeBytes ?? 0;
  }
  return Object.assign(slot, { numUsers, lastUsed });
}

const NO_LIMITS: RoomLimits = { budgetBytes: null, groups: new Map() };

/** The next step for a model of 40 bytes: ready, wait, or the id of a model to unload first. */
function planFor(wanted: Given, others: Readonly<Record<string, Given>>, limits: Partial<RoomLimits>): string {
  const slot = slotOf('wanted', { ...wanted, state: 'unloaded' });
  const slots = Object.entries(others).map(([id, given]) => slotOf(id, given));
  const plan = planRoom([slot, ...slots], slot, { ...NO_LIMITS, ...limits });
  return typeof plan === 'string' ? plan : plan.entry.id;
}

test.each<[string, Given, Readonly<Record<string, Given>>, Partial<RoomLimits>, string]>([
  ['without limits', {}, { a: { numUsers: 1 } }, {}, 'ready'],
  ['with room to the byte', {}, { a: {} }, { budgetBytes: 80 }, 'ready'],
  ['one byte short', {}, { a: {} }, { budgetBytes: 79 }, 'a'],
  ['of unknown size', { sizeBytes: null }, { a: {} }, { budgetBytes: 40 }, 'ready'],
  ['beside models that are not loaded', {}, { a: { state: 'unloaded' } }, { budgetBytes: 40 }, 'ready'],
  ['beside a model in use', {}, { a: { numUsers: 1 } }, { budgetBytes: 79 }, 'wait'],
  ['beside a lost one that requests wait for', {}, { a: { numUsers: 1, state: 'lost' } }, { budgetBytes: 79 }, 'a'],
  ['beside a pinned one', {}, { p: { isPinned: true }, a: {} }, { budgetBytes: 100 }, 'a'],
  ['beside a pinned one that was lost', {}, { p: { isPinned: true, state: 'lost' }, a: { numUsers: 1 } }, { budgetBytes: 100 }, 'p'], // prettier-ignore
  ['beside a pinned one that leaves just its room', {}, { p: { isPinned: true } }, { budgetBytes: 80 }, 'ready'],
  ['beside two, the one not used for longer goes', {}, { a: { lastUsed: 2 }, b: { lastUsed: 1 } }, { budgetBytes: 100 }, 'b'], // prettier-ignore
  ['in a group with room', { group: 'g' }, { a: { group: 'g' } }, { groups: new Map([['g', 2]]) }, 'ready'],
  ['in a full group', { group: 'g' }, { a: { group: 'g', lastUsed: 2 }, b: { lastUsed: 1 } }, { groups: new Map([['g', 1]]) }, 'a'], // prettier-ignore
  ['in a full group whose models are in use', { group: 'g' }, { a: { group: 'g', numUsers: 1 } }, { groups: new Map([['g', 1]]) }, 'wait'], // prettier-ignore
  ['in a group of models that are not loaded', { group: 'g' }, { a: { group: 'g', state: 'unloaded' } }, { groups: new Map([['g', 1]]) }, 'ready'], // prettier-ignore
  ['in a group without a limit', { group: 'g' }, { a: { group: 'g' } }, { groups: new Map([['h', 1]]) }, 'ready'],
  ['in a group beside others', { group: 'g' }, { a: { group: 'h' }, b: {} }, { groups: new Map([['g', 1]]) }, 'ready'],
  ['in no group beside full ones', {}, { a: { group: 'g' }, b: {} }, { groups: new Map([['g', 1]]) }, 'ready'],
])('the next step for a model %s', (_name, wanted, others, limits, expected) => {
  expect(planFor(wanted, others, limits)).toBe(expected);
});

test('a model that can never have its room is refused with the numbers', () => {
  expect(() => planFor({ sizeBytes: 81 }, {}, { budgetBytes: 80 })).toThrow(
    expect.objectContaining({
      message: 'model wanted takes 81 bytes, the budget for models is 80',
      data: { neededBytes: 81, budgetBytes: 80, pinnedBytes: 0 },
    }),
  );
  expect(() => planFor({}, { p: { isPinned: true }, a: {} }, { budgetBytes: 79 })).toThrow(
    'model wanted takes 40 bytes, the budget for models is 79, of which pinned models hold 40',
  );
  expect(planFor({ isPinned: true }, {}, { budgetBytes: 40 })).toBe('ready'); // itself does not count
});

test.each([
  [0, 3, 1, true],
  [1, 3, 2, true],
  [1, 3, 1, false],
  [2, 2, 2, true],
  [2, 3, 2, false],
  [3, 3, 2, false],
])(
  'a group with %d pinned of %d models, of which %d are loaded: whether it is taken',
  (numPinned, numModels, maxLoaded, isTaken) => {
    // prettier-ignore
    const slots = Array.from({ length: numModels }, (_, i) => slotOf(`m${i}`, { group: 'g', isPinned: i < numPinned }));
    const check = (): void => checkGroups([...slots, slotOf('other', { isPinned: true })], new Map([['g', maxLoaded]]));
    if (isTaken) expect(check).not.toThrow();
    else {
      expect(check).toThrow(
        `group "g" holds at most ${maxLoaded} loaded models; ${numPinned} of its ${numModels} models are pinned`,
      );
    }
  },
);
