import type { View } from '../../app/views.ts';

export const view: View = {
  id: 'chat',
  title: 'Chat',
  icon: 'chat',
  order: 1,
  isOpenTo: ({ write }) => write,
  load: () => import('./index.tsx'),
};
