package sluice;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;

import org.openstack.storlet.common.IStorlet;
import org.openstack.storlet.common.StorletException;
import org.openstack.storlet.common.StorletInputStream;
import org.openstack.storlet.common.StorletLogger;
import org.openstack.storlet.common.StorletObjectOutputStream;
import org.openstack.storlet.common.StorletOutputStream;

/** Gives back what it takes, byte by byte: the smallest storlet, in Java. One instance serves all runs. */
public class Identity implements IStorlet {
    private static final int PIECE = 64 * 1024;

    @Override
    public void invoke(
            ArrayList<StorletInputStream> inputs,
            ArrayList<StorletOutputStream> outputs,
            Map<String, String> parameters,
            StorletLogger logger)
            throws StorletException {
        StorletObjectOutputStream target = (StorletObjectOutputStream) outputs.get(0);
        target.setMetadata(new HashMap<>(inputs.get(0).getMetadata()));
        byte[] piece = new byte[PIECE];
        try (InputStream in = inputs.get(0).getStream(); OutputStream out = target.getStream()) {
            for (int got = in.read(piece); got >= 0; got = in.read(piece)) {
                out.write(piece, 0, got);
            }
        } catch (IOException error) {
            throw new StorletException(error.toString());
        }
    }
}
