import type { FleetKeys } from '../../server/fleet/fleet-keys.ts';
import type { NoteRefusal } from '../shared/signed-notes.ts';
import { compareReleases, NO_RELEASE, type Release, readRecord } from './release-record.ts';
import type { ReleaseStore } from './release-store.ts';

/** The committed release as a gateway knows it. */
export interface ReleaseView {
  readonly number: number;
  /** Whether the name of a request, `model:adapter`, asks for a published adapter. */
  isPublished(model: string): boolean;
}

export interface FollowCommitsOptions {
  readonly store: Pick<ReleaseStore, 'watch'>;
  readonly keys: FleetKeys;
  /** Called with the number of each new release. */
  onCommit(release: number): void;
  onRefused(reason: NoteRefusal): void;
}

/** Follows the committed release. */
export function followCommits({ store, keys, onCommit, onRefused }: FollowCommitsOptions): ReleaseView {
  let release: Release = NO_RELEASE;
  store.watch(({ text }) => {
    const record = readRecord(keys, text);
    if (record === null) return onRefused('signature');
    // An older one is a record that somebody has written again.
    if (compareReleases(record.committed, release) <= 0) return;
    release = record.committed;
    onCommit(release.number);
  });
  return {
    get number() {
      return release.number;
    },
    // By the end of the name, because nodes may know the model by other names.
    isPublished: (model) => release.adapters.some(({ name }) => model.endsWith(`:${name}`)),
  };
}
