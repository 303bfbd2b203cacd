import java.io.*;
import java.nio.file.*;
import java.util.*;
import java.util.function.*;
import java.util.stream.*;

/** What programs commonly use, so that compiling it loads the compiler's classes. */
public class Training {
  record Point(int x, int y) {}

  enum Colour { RED, GREEN }

  sealed interface Shape permits Circle {}

  record Circle(double radius) implements Shape {}

  static <T extends Comparable<T>> T largest(List<T> items) {
    return items.stream().max(Comparator.naturalOrder()).orElseThrow();
  }

  public static void main(String[] args) throws Exception {
    Map<String, Integer> counts = new HashMap<>();
    for (String word : "a b a".split(" ")) counts.merge(word, 1, Integer::sum);
    Function<Integer, Integer> twice = n -> n * 2;
    Object shape = new Circle(1);
    if (shape instanceof Circle circle) System.out.println(circle.radius());
    String text = switch (Colour.RED) {
      case RED -> "red";
      case GREEN -> "green";
    };
    System.out.printf("%s %d %s%n", text, twice.apply(largest(List.of(1, 2))), new Point(1, 2));
    System.out.println(IntStream.range(0, 3).boxed().collect(Collectors.toList()) + " " + counts);
    try (BufferedReader reader = new BufferedReader(new StringReader("x"))) {
      System.out.println(reader.readLine());
    }
    Runnable task = new Runnable() {
      @Override
      public void run() {
        System.out.println(Files.exists(Path.of("nothing")));
      }
    };
    task.run();
  }
}
