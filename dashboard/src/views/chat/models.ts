import { signal } from '@preact/signals';
import { api, identity, onSignOut } from '../../app/session.ts';
import type { ModelEntry } from '../../api/types.ts';
import { messageOf } from '../../api/errors.ts';

/** The available models; the first is the default. */
export const models = signal<readonly ModelEntry[]>([]);
export const modelsFailure = signal('');

onSignOut(() => {
  models.value = [];
  modelsFailure.value = '';
});

let loading = Promise.resolve();

export function loadModels(): Promise<void> {
  loading = load();
  return loading;
}

async function load(): Promise<void> {
  try {
    models.value = sortModels(await api.models(), identity.value?.route_alias ?? null);
    modelsFailure.value = '';
  } catch (error) {
    modelsFailure.value = messageOf(error);
  }
}

/** Sorts the router's alias first, then loaded models, then the others in the server's order. */
export function sortModels(entries: readonly ModelEntry[], routerAlias: string | null): ModelEntry[] {
  const rank = ({ id, state }: ModelEntry): number => (id === routerAlias ? 0 : state === 'loaded' ? 1 : 2);
  return [...entries].sort((a, b) => rank(a) - rank(b));
}

/** The candidates outside this server that may answer for a model; empty for a model of its own. */
export function remoteCandidatesOf(id: string): readonly string[] {
  return models.value.find((entry) => entry.id === id)?.remote_candidates ?? [];
}

/** Whether a model takes images; null: unknown until it is loaded. The router's alias takes them if all of its candidates do. */
export function seesImages(id: string): boolean | null {
  const entry = models.value.find((one) => one.id === id);
  const names = entry?.candidates;
  if (names === undefined) return entry?.capabilities?.vision ?? null;
  return names.every((name) => models.value.find((one) => one.id === name)?.capabilities?.vision === true);
}

/** Like `modelOf`, but waits for the list of models, so that a message sent right after page load works. */
export async function waitForModel(preferredId: string | null): Promise<string> {
  await loading;
  return modelOf(preferredId);
}

/** Returns the model that answers a conversation: the preferred one, or the first; empty if there are none. */
export function modelOf(preferredId: string | null): string {
  return models.value.find(({ id }) => id === preferredId)?.id ?? models.value[0]?.id ?? '';
}
