import { join } from 'node:path';
import { dataFolder } from '../files/paths.ts';
import { openOwnKey } from './own-key.ts';
import { checkTrustedKey, readTrustFile, type TrustedKey, writeTrustFile } from './trust-file.ts';

export const fleetFolder = (): string => join(dataFolder(), 'fleet');

function parse(value: unknown): readonly TrustedKey[] {
  const { publishers } = value as { publishers: readonly TrustedKey[] };
  publishers.forEach(checkTrustedKey);
  return publishers;
}

const trustPath = (): string => join(fleetFolder(), 'publishers.json');

/** Keys whose adapters this machine loads. Another list than those of kernel packs and peers, whose keys may do other things. */
export const readPublishers = (): readonly TrustedKey[] =>
  readTrustFile(trustPath(), { empty: [], parse, consequence: 'no publisher is trusted' });

export const writePublishers = (publishers: readonly TrustedKey[]): void => writeTrustFile(trustPath(), { publishers });

/** The key that this machine publishes with. */
export const openPublisherKey = () => openOwnKey(join(fleetFolder(), 'publisher-key.pem'));
