import * as nodeFiles from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../core/clock.ts';
import { type FollowedReleases, followReleases, type KeptRecord } from '../../gateway/releases/follow-releases.ts';
import { type PublishedAdapter, signedBytes } from '../../gateway/releases/release-record.ts';
import { createAdapterFiles } from '../../node/fleet/adapter-files.ts';
import { type AttachedNodeAdapters, createNodeAdapters } from '../../node/fleet/node-adapters.ts';
import { createNatsReleaseStore } from '../../platform/node/gateway/nats-release-store.ts';
import { readWhole, replaceFile } from '../../platform/node/sealing/atomic-files.ts';
import { isSignedBy } from '../../platform/node/signing/ed25519.ts';
import { fleetFolder, readPublishers } from '../../platform/node/signing/publisher-keys.ts';
import type { ModelHost } from '../../runtime/requests/model-host.ts';
import { fleetIdOf } from '../../server/fleet/fleet-keys.ts';
import type { FleetNode } from '../../server/fleet/fleet-node.ts';
import type { Logger } from '../../server/logger.ts';
import type { FleetPart } from './fleet-bus.ts';

const MAX_RECORD_BYTES = 2 << 20;

export interface ServedReleases
  extends FleetPart, Pick<FollowedReleases, 'started'>, Pick<AttachedNodeAdapters, 'attach'> {}

/** The adapters that the fleet has published, in the models of this server. */
export function openServedReleases({
  fleet,
  models,
  logger,
  signal,
}: {
  readonly fleet: FleetNode;
  readonly models: () => ModelHost;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}): ServedReleases {
  const fleetId = fleetIdOf(fleet.keys);
  const folder = join(fleetFolder(), fleetId);
  const store = createNatsReleaseStore({ fleet: fleetId, onBeat: (startMs) => releases.beat(startMs) });
  const adapters = createNodeAdapters({
    models,
    files: createAdapterFiles(store, join(folder, 'adapters')),
    hashOf: fleet.hashOf,
    findDistrust,
    check: () => releases.check(),
    onMissing: (reason) => logger.log('error', 'release', { reason }),
    signal,
  });
  const kept = openKeptRecord(join(folder, 'record.json'));
  const releases = followReleases({ store, keys: fleet.keys, clock: systemClock, logger, adapters, kept });
  fleet.releases = releases;
  return {
    attachment: store.attachment,
    onDisconnected: () => releases.giveUpStart(),
    attach: adapters.attach,
    join: releases.join,
    stop: releases.stop,
    started: releases.started,
  };
}

function findDistrust(adapter: PublishedAdapter): string | null {
  const { key, model, name, signature } = adapter;
  const shown = `adapter ${model}:${name}`;
  if (!isSignedBy(key, signedBytes(adapter), signature)) return `${shown} does not have the signature of ${key}`;
  if (readPublishers().some((one) => one.key === key)) return null;
  return `${shown} is signed by ${key}, which is not trusted here; ruvllm fleet trust KEY changes that`;
}

function openKeptRecord(path: string): KeptRecord {
  return {
    read: () =>
      nodeFiles.existsSync(path) ? new TextDecoder().decode(readWhole(nodeFiles, path, MAX_RECORD_BYTES) ?? undefined) : null, // prettier-ignore
    write: (text) => replaceFile(nodeFiles, path, [new TextEncoder().encode(text)], true),
  };
}
