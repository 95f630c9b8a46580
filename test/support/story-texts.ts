/** Stories written by stories260K with other seeds: one to measure with, one to judge by. */
export const CALIBRATION_STORY =
  ', there was a little girl named Lily. She loved to play outside in the park with her friends. One day, Lily went to ' +
  'the park to play. She saw a pretty rope on the ground. It was a beautiful little girl named Lily. She was very ' +
  'excited and wanted to play with her friends. Lily said, "Wow, that\'s amazing. We can fix your room." Mom said, ' +
  '"Okay, mom. I\'m going to be kind to your friend." Lily looked at the rope and said, "Yes, I can help you. Let\'s ' +
  'play a game." , there was a little girl named Lily. She loved to dance with her mommy and dance to her. One day, ' +
  'they went to the store with a big tea picture. Lily was excited, but she wanted to make a new cereal for her mommy. ' +
  'While they were walking, Lily saw a girl sitting on a shark. She asked, "What are you doing?" Mommy said, "I\'m ' +
  "sorry, Lily. I don't know what to do. Don't worry, we're not been too much anything.\" Lily cried and ran away, " +
  'there was a little girl named Lily. She had a big house who was very happy. One day, Lily and her mom went to the ' +
  'store to buy some food for her. They saw a pretty horse in the forest. Lily had an idea. She wanted to go for a ' +
  'walk. She touched a magic ground and showed it to her mom. Her mom said, "Sure, let\'s go to the magic way to see ' +
  'the food." Lily felt sad and cried a lesson. She realized that sometimes she can be careful with m, there was a ' +
  'little boy named Timmy. Timmy loved to play outside with his friends. One day, Timmy saw a big bird walking outside ' +
  'in the ground. He picked it up and waited for it to get some other birds. Timmy wanted to make a huge bird. But ' +
  "then, he remembered that he was scared and couldn't reach it. The bird flew away, and Timmy had an idea. He walked " +
  "to the bird's friend's house and slid down. The neighbor pushed away, but Timmy was a, there was a little girl " +
  'named Lily. She loved to play outside in the park. One day, she saw a police of her shiny dress and white old ' +
  'puppy. It was shiny and shiny, and it made her shiny. "Wow, look at that welcome!" she said. "It\'s a great idea!" ' +
  'said Lily. "It is a little bird! It\'s okay." Lily said. The bird showed Lily a nice surprise and said, "It\'s okay, ' +
  'Lily. I can help you.';

export const HELD_OUT_STORY =
  ', a little boy named Tim went for a walk in the park with his mom. They saw a big juice that was in the box. Tim ' +
  'wanted to pick it up. He ran to the juice, and the box was not afraid. He saw a big box on the floor. The box was ' +
  'not a box. Tim was all fast and cold. The boy showed his mom the box. The boy said, "Tim, let\'s play with you. I ' +
  'want to play with your friend." So, Tim and his friends were very happy. They played with the box all day long. ' +
  'They played together in the park., a little girl named Lily went to the park with her mom. She saw a big tree and ' +
  'wanted to have a picture of her toys. Lily asked her mom, "What do you want to help?" Her mom said, "I did it, but ' +
  'I have to pretend it would make animals." Lily felt very sad and wanted to go to the picture. She said, "Mommy, can ' +
  'I play with my toys?" Her mom smiled and said, "Okay, let\'s play a game." As they walked until they found a lot of ' +
  'fun. They were playing with their, a little boy named Tim went to the park. He saw a big, shiny ball. The sky was ' +
  'very good. Tim wanted to see the balloon, but he was too scared. Tim went to the slide to get the ball. He tried to ' +
  'scratch it, but it was too late. The slide jumped into the slide. Tim was sad. Tim started to rub his hand. He ' +
  'looked up and saw a big, scary ball. He thought it would be fun to play with his toy. Tim said, "Do you want to ' +
  'play with me?" Tim and his mom rep, a little boy named Timmy went to the store with his mommy.';
