import type { FleetBus } from '../../src/gateway/shared/fleet-bus.ts';

/** A bus within the process. `refresh` is the heartbeat of all entries. */
export function createMemoryBus() {
  const entries = new Map<string, () => string>();
  const watchers: ((text: string) => void)[] = [];
  const subscribers: { readonly topic: string; readonly onText: (text: string) => void }[] = [];
  const sent: string[] = [];
  const state = { isConnected: true };
  const show = (text: string): void => {
    if (state.isConnected) for (const onEntry of watchers) onEntry(text);
  };
  const bus: FleetBus = {
    get isConnected() {
      return state.isConnected;
    },
    keep(name, write) {
      entries.set(name, write);
      show(write());
      return { refresh: async () => show(write()), stop: () => void entries.delete(name) };
    },
    watch: (onEntry) => void watchers.push(onEntry),
    publish(topic, text) {
      sent.push(text);
      if (state.isConnected) for (const one of subscribers) if (one.topic === topic) one.onText(text);
    },
    subscribe: (topic, onText) => void subscribers.push({ topic, onText }),
    close: async () => {},
  };
  return { bus, state, sent, show, refresh: () => [...entries.values()].forEach((write) => show(write())) };
}
