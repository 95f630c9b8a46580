import type { RoomPlan } from './model-room.ts';
import type { ModelSlot } from './model-slot.ts';

/** Models that wait to be loaded: one load at a time, in the order of their first request. */
export interface LoadQueue {
  /** Loads a model, after those that wait already. Rejects if it fails; resolves without a model if its place was given up. */
  load(slot: ModelSlot): Promise<void>;
  /** Keeps the place of a model although its requests have ended, behind models with requests. */
  keep(slot: ModelSlot): void;
  /** Gives up the place of a model that no request waits for, unless it is kept or its load has begun. */
  leave(slot: ModelSlot): void;
  /** Plans again: a model became idle or was unloaded. */
  wake(): void;
}

export interface LoadQueueOptions {
  planRoom(slot: ModelSlot): RoomPlan;
  unload(slot: ModelSlot): Promise<void>;
  /** Loads a model for which there is room. */
  begin(slot: ModelSlot): Promise<void>;
}

interface Place {
  readonly slot: ModelSlot;
  isKept: boolean;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export function createLoadQueue({ planRoom, unload, begin }: LoadQueueOptions): LoadQueue {
  const places: Place[] = [];
  let isRunning = false;
  let wake = (): void => {};

  const placeOf = (slot: ModelSlot): Place | undefined => places.find((place) => place.slot === slot);
  const next = (): Place | undefined => places.find(({ slot }) => slot.numUsers > 0) ?? places[0];

  function remove(place: Place): void {
    const index = places.indexOf(place);
    if (index >= 0) places.splice(index, 1);
  }

  /** One step; waiting requests may leave during each, so the next one plans again. */
  async function step(place: Place): Promise<void> {
    const { slot } = place;
    // Its engine was lost, or its memory is being given back.
    if (slot.model !== null || slot.unloading !== null) return await unload(slot);
    const plan = planRoom(slot);
    if (plan === 'wait') return await new Promise((resolve) => (wake = resolve));
    if (plan !== 'ready') return await unload(plan);
    remove(place);
    await begin(slot);
    place.resolve();
  }

  async function run(): Promise<void> {
    if (isRunning) return;
    isRunning = true;
    for (let place = next(); place !== undefined; place = next()) {
      try {
        await step(place);
      } catch (error) {
        remove(place);
        place.reject(error);
      }
    }
    isRunning = false;
  }

  return {
    load(slot) {
      return new Promise((resolve, reject) => {
        places.push({ slot, isKept: false, resolve, reject });
        void run();
        wake();
      });
    },
    keep(slot) {
      const place = placeOf(slot);
      if (place !== undefined) place.isKept = true;
      wake();
    },
    leave(slot) {
      const place = placeOf(slot);
      if (place === undefined || place.isKept || slot.numUsers > 0) return;
      remove(place);
      place.resolve(); // a request that comes at this moment queues the model again
      wake();
    },
    wake: () => wake(),
  };
}
