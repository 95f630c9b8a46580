import type { SharedPlace } from '../../../kv-cache/shared-store.ts';
import { createFolderObjects } from './folder-objects.ts';
import type { ObjectStore } from './object-store.ts';
import { createS3Objects } from './s3-objects.ts';

export const openObjects = (place: SharedPlace): ObjectStore =>
  place.type === 'folder' ? createFolderObjects(place.path) : createS3Objects(place);
