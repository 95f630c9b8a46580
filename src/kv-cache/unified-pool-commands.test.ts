import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createPoolModel, type PoolShape } from './unified-pool.contract.ts';
import type { KvPage } from './types.ts';

type Model = ReturnType<typeof createPoolModel>;

interface Command {
  readonly kind: keyof typeof COMMANDS;
  /** Which of the existing items, and how many. */
  readonly pick: number;
  readonly amount: number;
}

const at = <T>(items: readonly T[], pick: number): T | undefined => items[pick % Math.max(1, items.length)];

function takeOut<T>(items: T[], pick: number): T | undefined {
  return items.length === 0 ? undefined : items.splice(pick % items.length, 1)[0];
}

function allocate({ pool, owners, name, write, snapshot }: Model, tier: 'float' | 'packed', amount: number): void {
  const before = snapshot();
  if (!pool.canAllocate(tier, amount)) {
    expect(() => pool.allocate(tier, amount)).toThrow(expect.objectContaining({ code: 'out_of_memory' }));
    expect(snapshot()).toEqual(before);
    return;
  }
  expect(snapshot()).toEqual(before);
  const pages = pool.allocate(tier, amount);
  expect(pages.map((page) => [page.tier, page.numRefs])).toEqual(pages.map(() => [tier, 1]));
  for (const page of pages) {
    name(page);
    write(page, tier, page.index);
  }
  // One owner each: the pages of a sequence are not released in the order they were allocated.
  for (const page of pages) owners.push([page]);
}

const COMMANDS = {
  float: (model: Model, { amount }: Command) => allocate(model, 'float', amount),
  fill(model: Model, { pick, amount }: Command) {
    const tier = pick % 3 === 0 ? 'packed' : 'float';
    allocate(model, tier, Math.max(0, model.pool.numFreePages(tier) - (amount % 3)));
  },
  packed: (model: Model, { amount }: Command) => allocate(model, 'packed', amount),
  retain({ pool, owners }: Model, { pick }: Command) {
    const owner = at(owners, pick);
    if (!owner) return;
    for (const page of owner) pool.retain(page);
    owners.push([...owner]);
  },
  release({ pool, owners }: Model, { pick, amount }: Command) {
    for (let i = 0; i < amount; i++) {
      for (const page of takeOut(owners, pick + i * 7) ?? []) pool.release(page);
    }
  },
  beginPack({ pool, owners, tickets, write, snapshot }: Model, { pick, amount }: Command) {
    const busy = new Set(tickets.flatMap(({ pages }) => pages));
    const able = [...new Set(owners.flat())].filter((page) => page.tier === 'float' && !busy.has(page));
    const pages = new Set<KvPage>();
    for (let i = 0; i < amount; i++) {
      const page = at(able, pick + i * 3);
      if (page) pages.add(page);
    }
    const before = snapshot();
    const hasRoom = pool.canAllocate('packed', pages.size);
    const ticket = pool.beginPack([...pages]);
    expect(ticket !== null).toBe(hasRoom);
    if (!ticket) return expect(snapshot()).toEqual(before);
    expect(ticket.moves.map(({ from }) => from)).toEqual([...pages].map(({ index }) => index));
    ticket.moves.forEach(({ to }, i) => write(ticket.pages[i]!, 'packed', to));
    tickets.push(ticket);
  },
  finishPack({ pool, tickets }: Model, { pick }: Command) {
    const ticket = takeOut(tickets, pick);
    if (ticket) pool.finishPack(ticket);
  },
  cancelPack({ pool, tickets }: Model, { pick }: Command) {
    const ticket = takeOut(tickets, pick);
    if (ticket) pool.cancelPack(ticket);
  },
  reserve({ pool, reservations, newFill, fillReservation, slabBytes }: Model, { amount }: Command) {
    const sizeBytes = Math.max(1, Math.floor((slabBytes * amount) / 4));
    if (!pool.canReserve(sizeBytes)) return;
    const reservation = pool.reserve(sizeBytes);
    expect(reservation.slabs.length).toBe(Math.ceil(sizeBytes / slabBytes));
    const fill = newFill() * 2;
    fillReservation(reservation, fill);
    reservations.push({ reservation, fill });
  },
  unreserve({ pool, reservations }: Model, { pick }: Command) {
    const taken = takeOut(reservations, pick);
    if (taken) pool.unreserve(taken.reservation);
  },
};

const shapes: fc.Arbitrary<PoolShape> = fc
  .record({
    numPages: fc.integer({ min: 1, max: 30 }),
    slabPages: fc.integer({ min: 1, max: 7 }),
    packedBytes: fc.constantFrom(null, 4, 8, 12, 16, 20, 24),
  })
  .map(({ numPages, slabPages, packedBytes }) => {
    return { numPages, slabPages: Math.min(numPages, slabPages), packedBytes, pageBytes: 24, unitBytes: 4 };
  });

const kinds = Object.keys(COMMANDS) as Command['kind'][];
const commands = fc.array(
  fc.record({
    kind: fc.constantFrom(...kinds, 'fill', 'release', 'release', 'beginPack', 'finishPack'),
    pick: fc.nat(1000),
    amount: fc.integer({ min: 0, max: 9 }),
  }),
  { maxLength: 50, size: 'max' },
);

test('[UP1] [UP2] [UP5] [UP6] [UP7] any commands: live bytes never overlap, stay within the budget and keep their content', () => {
  let numMoves = 0;
  let numMovesBesideTickets = 0;
  fc.assert(
    fc.property(shapes, commands, (shape, list) => {
      const model = createPoolModel(shape);
      model.check();
      for (const command of list) {
        COMMANDS[command.kind](model, command);
        model.check();
      }
      for (const ticket of model.tickets.splice(0)) model.pool.finishPack(ticket);
      for (const page of model.owners.splice(0).flat()) model.pool.release(page);
      for (const { reservation } of model.reservations.splice(0)) model.pool.unreserve(reservation);
      model.check();
      expect(model.pool.usedBytes).toBe(0);
      numMoves += model.counts().numMoves;
      numMovesBesideTickets += model.counts().numMovesBesideTickets;
    }),
    { numRuns: 400 },
  );
  // Otherwise the commands above do not reach the interesting states.
  expect(numMoves).toBeGreaterThan(100);
  expect(numMovesBesideTickets).toBeGreaterThan(20);
});
