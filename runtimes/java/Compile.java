import com.sun.source.tree.ClassTree;
import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.MethodTree;
import com.sun.source.tree.Tree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.TaskEvent;
import com.sun.source.util.TaskListener;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Stream;
import java.util.zip.Deflater;
import java.util.zip.ZipEntry;
import javax.lang.model.element.Modifier;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.ForwardingJavaFileObject;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/**
 * Compiles a program into a jar that can be started: Compile ENTRY JAR. The entry may hold public classes of any name;
 * classes of other files are found by their name, as javac finds them. Says what javac says; exit status 1: it failed.
 */
final class Compile {
  private Compile() {}

  public static void main(String[] args) throws IOException {
    try (var standard =
        ToolProvider.getSystemJavaCompiler().getStandardFileManager(null, null, StandardCharsets.UTF_8)) {
      var entry = new Entry(standard.getJavaFileObjects(args[0]).iterator().next());
      var mainClass = new MainClass();
      List<String> jars = jarsBeside();
      // Classes that lie in the workspace are found like jars, by the program too (write).
      var classPath = String.join(":", Stream.concat(Stream.of("."), jars.stream()).toList());
      var options =
          List.of("-encoding", "UTF-8", "-sourcepath", ".", "-classpath", classPath, "-proc:none", "-nowarn");
      var out = new PrintWriter(System.err, true, StandardCharsets.UTF_8);
      var classes = new Classes(standard);
      var task =
          (JavacTask)
              ToolProvider.getSystemJavaCompiler().getTask(out, classes, null, options, null, List.of(entry));
      task.addTaskListener(mainClass);
      if (!task.call()) System.exit(1);
      if (mainClass.name == null) {
        out.println(args[0] + ": error: there is no class");
        System.exit(1);
      }
      classes.write(Path.of(args[1]), mainClass.name, jars);
    }
  }

  private static List<String> jarsBeside() throws IOException {
    List<String> jars = new ArrayList<>();
    try (DirectoryStream<Path> found = Files.newDirectoryStream(Path.of("."), "*.jar")) {
      for (Path jar : found) jars.add(jar.getFileName().toString());
    }
    return jars;
  }

  /** The entry file; its name demands nothing of its classes. */
  private static final class Entry extends ForwardingJavaFileObject<JavaFileObject> {
    Entry(JavaFileObject file) {
      super(file);
    }

    @Override
    public boolean isNameCompatible(String simpleName, Kind kind) {
      return kind == Kind.SOURCE;
    }
  }

  /** Finds the class of the entry that has a main method, or else its first class. */
  private static final class MainClass implements TaskListener {
    private boolean parsed;
    String name;

    @Override
    public void finished(TaskEvent event) {
      // The entry is parsed before the files that it needs.
      if (event.getKind() != TaskEvent.Kind.PARSE || parsed) return;
      parsed = true;
      CompilationUnitTree unit = event.getCompilationUnit();
      String prefix = unit.getPackageName() == null ? "" : unit.getPackageName() + ".";
      String first = null;
      for (Tree tree : unit.getTypeDecls()) {
        if (!(tree instanceof ClassTree type)) continue;
        String qualified = prefix + type.getSimpleName();
        if (first == null) first = qualified;
        if (name == null && hasMain(type)) name = qualified;
      }
      if (name == null) name = first;
    }

    private static boolean hasMain(ClassTree type) {
      for (Tree member : type.getMembers()) {
        if (member instanceof MethodTree method
            && method.getName().contentEquals("main")
            && method.getModifiers().getFlags().contains(Modifier.STATIC)
            && method.getParameters().size() == 1) return true;
      }
      return false;
    }
  }

  /** Keeps class files in memory until they become a jar. */
  private static final class Classes extends ForwardingJavaFileManager<StandardJavaFileManager> {
    private final Map<String, ByteArrayOutputStream> files = new TreeMap<>();

    Classes(StandardJavaFileManager standard) {
      super(standard);
    }

    @Override
    public JavaFileObject getJavaFileForOutput(
        JavaFileManager.Location location, String className, JavaFileObject.Kind kind, FileObject sibling) {
      var path = className.replace('.', '/') + kind.extension;
      return new SimpleJavaFileObject(URI.create("memory:///" + path.replace("$", "%24")), kind) {
        @Override
        public OutputStream openOutputStream() {
          var bytes = new ByteArrayOutputStream();
          files.put(path, bytes);
          return bytes;
        }
      };
    }

    /** Resources and jars are looked for in the working directory, where the jar's folder lies. */
    void write(Path jar, String mainClass, List<String> jars) throws IOException {
      var manifest = new Manifest();
      var attributes = manifest.getMainAttributes();
      attributes.put(Attributes.Name.MANIFEST_VERSION, "1.0");
      attributes.put(Attributes.Name.MAIN_CLASS, mainClass);
      var classPath = new StringBuilder("../");
      for (String name : jars) classPath.append(" ../").append(Path.of(name).toUri().getRawPath().replaceFirst(".*/", ""));
      attributes.put(Attributes.Name.CLASS_PATH, classPath.toString());
      try (var out = new JarOutputStream(Files.newOutputStream(jar), manifest)) {
        out.setLevel(Deflater.BEST_SPEED);
        for (var file : files.entrySet()) {
          out.putNextEntry(new ZipEntry(file.getKey()));
          file.getValue().writeTo(out);
        }
      }
    }
  }
}
