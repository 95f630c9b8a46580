import type { View } from '../../app/views.ts';
import { messages } from '../../messages/index.ts';

export const view: View = {
  id: 'keys',
  title: messages.keys.title,
  icon: 'keys',
  order: 7,
  isOpenTo: ({ admin }) => admin,
  load: () => import('./index.tsx'),
};
